// SPDX-License-Identifier: Apache-2.0
#include "ask/server_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "testing/one_server.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using testing::HttpAnswer;
using ::testing::Not;
using testing::OneServer;

ServerAddress Of(std::string url, std::string key = "") {
  auto address = CheckAddress({.url = std::move(url), .key = std::move(key)});
  EXPECT_TRUE(address.ok()) << address.status().message();
  return address.ok() ? *std::move(address) : ServerAddress();
}

bool TakeAll(std::string_view, long) { return true; }

Status RunToEnd(ServerCall& call) {
  call.Begin();
  while (true) {
    if (auto ended = call.Wait({}, 100)) return *ended;
  }
}

TEST(ServerCall, AddressesAreCheckedAndShortened) {
  for (const char* url : {"", "localhost:8080", "ftp://x", "file:///etc/passwd", "HTTP//x"}) {
    const Status status = CheckAddress({.url = url}).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << url;
    EXPECT_THAT(status.message(), HasSubstr("http://"));
  }
  for (const char* key : {"a b", "a\r\nx-evil: 1", "\xc3\xa9", "\x7f"}) {
    const Status status = CheckAddress({.url = "http://x", .key = key}).status();
    EXPECT_THAT(status.message(), HasSubstr("the key contains characters"));
  }
  for (const char* url : {"http://x:1", "http://x:1/", "http://x:1/v1", "http://x:1/v1//"}) {
    EXPECT_EQ(Of(url).url, "http://x:1") << url;
  }
}

TEST(ServerCall, TakesAnAnswerAsItComes) {
  const OneServer server({HttpAnswer(203, "yes")});
  std::string body;
  long seen = 0;
  ServerCall call(Of(server.url() + "/v1", "secret"), "/v1/models",
                  [&](std::string_view bytes, long status) {
                    body += bytes;
                    seen = status;
                    return true;
                  });
  const Status status = RunToEnd(call);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(body, "yes");
  EXPECT_EQ(seen, 203);
  EXPECT_EQ(call.http_status(), 203);
  EXPECT_EQ(call.where(), server.url());
  EXPECT_THAT(server.asked(), HasSubstr("GET /v1/models HTTP/1.1\r\n"));
  EXPECT_THAT(server.asked(), HasSubstr("Authorization: Bearer secret\r\n"));
}

TEST(ServerCall, SendsJson) {
  const OneServer server({HttpAnswer(200, "")});
  ServerCall call(Of(server.url()), "/x", TakeAll);
  call.Post("{\"a\":\"" + std::string(100000, 'b') + "\"}");
  EXPECT_TRUE(RunToEnd(call).ok());
  EXPECT_THAT(server.asked(), HasSubstr("POST /x HTTP/1.1\r\n"));
  EXPECT_THAT(server.asked(), HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(server.asked(), Not(HasSubstr("Expect:")));
  EXPECT_THAT(server.asked(), Not(HasSubstr("Authorization")));
  EXPECT_TRUE(server.asked().ends_with("bbb\"}"));
}

TEST(ServerCall, AsksAgainOverTheSameConnection) {
  // It serves one connection after the other: a second one would wait for the first for ever.
  const OneServer server({HttpAnswer(200, "a"), HttpAnswer(200, "b"), HttpAnswer(200, "c")});
  std::string body;
  ServerCall call(Of(server.url()), "/status", [&](std::string_view bytes, long) {
    body += bytes;
    return true;
  });
  call.Limit(20);
  for (int i = 0; i < 3; ++i) {
    const Status status = RunToEnd(call);
    EXPECT_TRUE(status.ok()) << i << ": " << status.message();
  }
  EXPECT_EQ(body, "abc");
}

TEST(ServerCall, TheTakerMayEndIt) {
  const OneServer server({HttpAnswer(200, "yes")});
  int num_taken = 0;
  ServerCall call(Of(server.url()), "/x", [&](std::string_view, long) {
    ++num_taken;
    return false;
  });
  EXPECT_TRUE(RunToEnd(call).ok()) << "the taker knows why";
  EXPECT_EQ(num_taken, 1);
}

TEST(ServerCall, FollowsNobodyElsewhereWithItsKey) {
  const OneServer other({HttpAnswer(200, "stolen")});
  const OneServer server({HttpAnswer(302, "", "Location: " + other.url() + "/x\r\n")});
  ServerCall call(Of(server.url(), "secret"), "/x", TakeAll);
  EXPECT_TRUE(RunToEnd(call).ok());
  EXPECT_EQ(call.http_status(), 302);
  EXPECT_TRUE(other.questions().empty());
}

TEST(ServerCall, UsesNoProxyAndALocalSocket) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  const testing::TempDir folder;
  ServerAddress address = Of("http://hearth");
  address.unix_path = folder.Path("socket");
  const OneServer server({HttpAnswer(200, "")}, address.unix_path);
  ServerCall call(address, "/status", TakeAll);
  const Status status = RunToEnd(call);
  unsetenv("http_proxy");
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(call.where(), address.unix_path);
  EXPECT_THAT(server.asked(), HasSubstr("Host: hearth\r\n"));
}

TEST(ServerCall, SaysWhatWentWrongAndWhere) {
  ServerCall nobody(Of("http://127.0.0.1:1"), "/x", TakeAll);
  EXPECT_EQ(RunToEnd(nobody).message(),
            "http://127.0.0.1:1: no answer; is `hearth serve` running there?");
  const OneServer server({"nonsense Connection: close\r\n\r\n"});
  ServerCall odd(Of(server.url()), "/x", TakeAll);
  const Status status = RunToEnd(odd);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr(server.url() + ": "));
}

TEST(ServerCall, IsOverInTime) {
  const OneServer silent({});
  ServerCall call(Of(silent.url()), "/x", TakeAll);
  call.Limit(1);
  const Status status = RunToEnd(call);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), HasSubstr("timed out"));
}

TEST(ServerCall, WakesForWhoeverElseIsWaitedFor) {
  const OneServer silent({});
  ServerCall call(Of(silent.url()), "/x", TakeAll);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  call.Begin();
  call.Begin();  // nothing happens
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  const std::array<int, 1> watched{ends[0]};
  EXPECT_FALSE(call.Wait(watched, 60'000).has_value());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace hearth
