// SPDX-License-Identifier: Apache-2.0
// What libcurl makes of answers. Faults of the network are played in tests/hub.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/transport.h"
#include "testing/one_server.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using ::testing::Not;
using testing::OneServer;

class Sink final : public FetchSink {
 public:
  bool OnHead(const HttpHead& given) override {
    head = given;
    ++num_heads;
    return takes_head;
  }
  bool OnBytes(std::span<const std::byte> bytes) override {
    body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
  HttpHead head;
  int num_heads = 0;
  bool takes_head = true;
  std::string body;
};

class CurlTransportTest : public ::testing::Test {
 protected:
  FetchOutcome Fetch(const HttpFetch& fetch) {
    transport_->Begin(3, fetch, sink_);
    while (true) {
      const std::vector<FetchOutcome> outcomes = transport_->Wait(milliseconds(100));
      if (!outcomes.empty()) return outcomes.front();
    }
  }
  std::unique_ptr<Transport> transport_ = *OpenCurlTransport(milliseconds(2000));
  Sink sink_;
};

TEST_F(CurlTransportTest, HeadersAndBytes) {
  const OneServer server({HttpAnswer(
      206, "efgh", "CONTENT-range:  bytes 4-7/10 \r\nETag: W/\"tag\"\r\nRetry-After: 7\r\n")});
  const FetchOutcome outcome =
      Fetch({.url = server.url() + "/f", .token = "t", .first = 4, .last = 7});
  EXPECT_EQ(outcome.slot, 3);
  EXPECT_EQ(outcome.trouble, FetchTrouble::kNone) << outcome.why;
  EXPECT_EQ(outcome.head.status, 206);
  EXPECT_EQ(sink_.num_heads, 1);
  EXPECT_EQ(sink_.head.range_first, 4u);
  EXPECT_EQ(sink_.head.range_total, 10u);
  EXPECT_EQ(sink_.head.length, 4u);
  EXPECT_EQ(sink_.head.etag, "tag");
  EXPECT_EQ(sink_.head.retry_after, "7");
  EXPECT_EQ(sink_.body, "efgh");
  EXPECT_THAT(server.asked(), HasSubstr("Range: bytes=4-7\r\n"));
  EXPECT_THAT(server.asked(), HasSubstr("Authorization: Bearer t\r\n"));
}

TEST_F(CurlTransportTest, RangesThatAreNoneAreNotGuessed) {
  for (const char* range : {"items 4-7/10", "bytes 4", "bytes x-7/10", "bytes 4-7/*", "bytes"}) {
    const OneServer server({HttpAnswer(206, "x", "Content-Range: " + std::string(range) + "\r\n")});
    sink_ = Sink();
    Fetch({.url = server.url(), .first = 4, .last = 7});
    const bool knows_first = std::string_view(range) == "bytes 4-7/*";
    EXPECT_EQ(sink_.head.range_first.has_value(), knows_first) << range;
    if (std::string_view(range) != "bytes x-7/10") {
      EXPECT_FALSE(sink_.head.range_total.has_value()) << range;
    }
  }
}

TEST_F(CurlTransportTest, ATokenStaysWithItsServer) {
  const OneServer files({HttpAnswer(200, "file", "ETag: \"of the copy\"\r\n")});
  const OneServer hub({HttpAnswer(302, "",
                                  "Location: " + files.url() +
                                      "/signed\r\nX-Linked-Size: 4\r\nX-Linked-Etag: \"sum\"\r\n"
                                      "ETag: \"of the pointer\"\r\nRetry-After: 9\r\n")});
  const FetchOutcome outcome = Fetch({.url = hub.url() + "/f", .token = "secret"});
  EXPECT_EQ(outcome.trouble, FetchTrouble::kNone) << outcome.why;
  EXPECT_EQ(sink_.body, "file");
  EXPECT_THAT(hub.asked(), HasSubstr("Bearer secret"));
  EXPECT_THAT(files.asked(), Not(HasSubstr("secret")));
  EXPECT_EQ(sink_.head.linked_size, 4u) << "of the file itself, also from before the redirect";
  EXPECT_EQ(sink_.head.linked_etag, "sum");
  EXPECT_EQ(sink_.head.etag, "of the copy");
  EXPECT_EQ(sink_.head.retry_after, "") << "that was another answer's";
}

TEST_F(CurlTransportTest, RedirectsLeadToNoOtherProtocolAndNotForEver) {
  const OneServer file({HttpAnswer(302, "", "Location: file:///etc/passwd\r\n")});
  EXPECT_EQ(Fetch({.url = file.url()}).trouble, FetchTrouble::kInterrupted);
  EXPECT_EQ(sink_.body, "");
  const OneServer loop(std::vector<std::string>(20, HttpAnswer(302, "", "Location: /again\r\n")));
  EXPECT_EQ(Fetch({.url = loop.url()}).trouble, FetchTrouble::kInterrupted);
  EXPECT_EQ(loop.questions().size(), 9u) << "the first and eight redirects";
}

TEST_F(CurlTransportTest, AnAnswerWithoutBytesHasAHead) {
  const OneServer server({"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"});
  const FetchOutcome outcome = Fetch({.url = server.url(), .is_head = true});
  EXPECT_EQ(outcome.trouble, FetchTrouble::kNone);
  EXPECT_EQ(sink_.num_heads, 1);
  EXPECT_EQ(sink_.head.length, 12345u);
  EXPECT_THAT(server.asked(), HasSubstr("HEAD / HTTP/1.1\r\n"));
}

TEST_F(CurlTransportTest, TheSinkMayEndIt) {
  const OneServer server({HttpAnswer(200, "x"), HttpAnswer(204, "")});
  sink_.takes_head = false;
  EXPECT_EQ(Fetch({.url = server.url()}).trouble, FetchTrouble::kStopped);
  EXPECT_EQ(sink_.body, "");
}

TEST_F(CurlTransportTest, TroubleHasItsKind) {
  const FetchOutcome nobody = Fetch({.url = "http://127.0.0.1:1/"});
  EXPECT_EQ(nobody.trouble, FetchTrouble::kNoConnection);
  EXPECT_NE(nobody.why, "");
  const OneServer cut({"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nabc"});
  const FetchOutcome half = Fetch({.url = cut.url()});
  EXPECT_EQ(half.trouble, FetchTrouble::kInterrupted);
  EXPECT_EQ(half.head.status, 200);
  EXPECT_EQ(sink_.body, "abc");
}

TEST_F(CurlTransportTest, CancelledRequestsLeaveTheirSlot) {
  const OneServer silent({});
  transport_->Begin(3, {.url = silent.url()}, sink_);
  EXPECT_TRUE(transport_->Wait(milliseconds(50)).empty());
  transport_->Cancel(3);
  transport_->Cancel(3);  // nothing happens
  const OneServer server({HttpAnswer(200, "yes")});
  EXPECT_EQ(Fetch({.url = server.url()}).trouble, FetchTrouble::kNone);
  EXPECT_EQ(sink_.body, "yes");
}

}  // namespace
}  // namespace hearth
