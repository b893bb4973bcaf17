// SPDX-License-Identifier: Apache-2.0
// A request whose reply nobody could make is answered as long as none of it has gone.
#include "http/last_words.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "http/http_server.h"
#include "testing/socket_client.h"

namespace hearth {
namespace {

using Client = testing::SocketClient;

std::string Describe(const HttpRefusal& refusal) { return "(" + refusal.path + ")"; }

Router TwoApis() {
  Router router;
  const auto drop = [](HttpRequest, std::shared_ptr<HttpReply>) {};
  router.Add("GET", "/v1/chat", Auth::kPublic, drop);
  router.Add("GET", "/v1/kept/{id}/parts", Auth::kPublic, drop);
  router.Add("POST", "/api", Auth::kPublic, drop);
  router.Add("GET", "/begun", Auth::kPublic, [](HttpRequest, std::shared_ptr<HttpReply> reply) {
    reply->StartStream(200, {});
    reply->Abort();
  });
  return router;
}

TEST(LastWords, AreThoseOfThePathThatWasAsked) {
  const LastWords words(TwoApis(), Describe);
  const auto body = [&](const char* head) {
    const std::string_view reply = words.For(head);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 503 ")) << reply;
    EXPECT_NE(reply.find("connection: close\r\n"), reply.npos);
    EXPECT_NE(reply.find("retry-after: 1\r\n"), reply.npos);
    return std::string(reply.substr(reply.find("\r\n\r\n") + 4));
  };
  EXPECT_EQ(body("GET /v1/chat HTTP/1.1\r\n"), "(/v1/chat)");
  EXPECT_EQ(body("GET /v1/kept/7/parts?x HTTP/1.1\r\n"), "(/v1/kept/)");
  EXPECT_EQ(body("POST /api"), "(/api)");
  EXPECT_EQ(body("GET /elsewhere HTTP/1.1"), "()");
  EXPECT_EQ(body("rubbish"), "()");
  EXPECT_EQ(body("HEAD /v1/chat HTTP/1.1"), "");
}

TEST(LastWords, WithoutADescriptionTheyAreTheDefault) {
  const LastWords words(TwoApis(), nullptr);
  EXPECT_NE(words.For("GET /api ").find("could not finish this request"), std::string::npos);
}

class LastWordsServer : public ::testing::Test {
 protected:
  void SetUp() override {
    HttpOptions options;
    options.describe_refusal = Describe;
    auto server = HttpServer::Listen(std::move(options), TwoApis());
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }
  std::string Ask(const std::string& bytes) {
    Client client(server_->port());
    client.Send(bytes);
    std::string got = client.ReadAll();
    EXPECT_TRUE(client.closed());
    return got;
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(LastWordsServer, AReplyThatIsLetGoOfIsA503) {
  const std::string got = Ask("GET /v1/kept/a/parts HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 503 ")) << got;
  EXPECT_TRUE(got.ends_with("(/v1/kept/)")) << got;
}

TEST_F(LastWordsServer, OneReplyAlsoToABodyAndAfterContinue) {
  const std::string head = "POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n";
  const std::string got = Ask(head + "Expect: 100-continue\r\n\r\nabc");
  EXPECT_TRUE(got.ends_with("(/api)")) << got;
  EXPECT_EQ(got.find("HTTP/1.1 503"), got.rfind("HTTP/1.1 503")) << got;
}

// Its head was only queued: nothing of it has gone.
TEST_F(LastWordsServer, AStreamThatWasAbortedBeforeItWasSentIsA503) {
  const std::string got = Ask("GET /begun HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(got.starts_with("HTTP/1.1 503 ")) << got;
  EXPECT_EQ(got.find("HTTP/1.1 200"), std::string::npos) << got;
}

class SayLastTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  std::string Said(std::string_view reply) {
    SayLast(ends_[0], LastWords(TwoApis(), Describe), reply);
    ::shutdown(ends_[0], SHUT_WR);
    std::string got(4096, '\0');
    const ssize_t n = ::read(ends_[1], got.data(), got.size());
    got.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return got;
  }
  int ends_[2];
};

TEST_F(SayLastTest, AnswersARequestThatWaitsInTheSocket) {
  const std::string_view asked = "POST /api HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::write(ends_[1], asked.data(), asked.size()), static_cast<ssize_t>(asked.size()));
  EXPECT_TRUE(Said("").ends_with("(/api)"));
  char rest = 0;
  EXPECT_LT(::recv(ends_[0], &rest, 1, MSG_DONTWAIT), 0) << "what came was not read";
}

TEST_F(SayLastTest, SaysNothingWhereNobodyAsked) { EXPECT_EQ(Said(""), ""); }

TEST_F(SayLastTest, SaysWhatItWasGiven) { EXPECT_EQ(Said("words"), "words"); }

}  // namespace
}  // namespace hearth
