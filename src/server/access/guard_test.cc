// SPDX-License-Identifier: Apache-2.0
#include "server/access/guard.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

HttpRequest Ask(std::vector<HttpHeader> headers, std::string method = "GET") {
  HttpRequest request;
  request.method = std::move(method);
  request.headers = std::move(headers);
  request.peer = "127.0.0.1";
  return request;
}

int StatusOf(HttpRequest request, Auth auth, const GuardPolicy& policy,
             const KeyRing* keys = nullptr) {
  const auto refusal = Guard(request, auth, policy, keys);
  return refusal ? refusal->status : 0;
}

TEST(Guard, ServesItsOwnHostsOnly) {
  const GuardPolicy policy{.hosts = {"box.lan"}};
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1:1", "127.9.9.9", "[::1]:80",
                           "box.lan", "box.lan:8080"}) {
    EXPECT_EQ(StatusOf(Ask({{"host", host}}), Auth::kPublic, policy), 0) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "box.lan.evil.example", "10.0.0.1", "127.evil"}) {
    EXPECT_EQ(StatusOf(Ask({{"host", host}}), Auth::kPublic, policy), 403) << host;
  }
}

TEST(Guard, ServesNoForeignPages) {
  const GuardPolicy policy{.origins = {"http://localhost:3000"}};
  const HttpHeader host{"host", "localhost"};
  EXPECT_EQ(StatusOf(Ask({host, {"origin", "http://localhost:3000"}}), Auth::kKey, policy), 0);
  EXPECT_EQ(StatusOf(Ask({host, {"origin", "http://evil.example"}}), Auth::kKey, policy), 403);
  EXPECT_EQ(StatusOf(Ask({host, {"origin", "null"}}), Auth::kPublic, policy), 403);
}

TEST(Guard, TakesOnlyJson) {
  const HttpHeader host{"host", "localhost"};
  const auto post = [&](const char* type) {
    return StatusOf(Ask({host, {"content-type", type}}, "POST"), Auth::kKey, {});
  };
  EXPECT_EQ(post("application/json"), 0);
  EXPECT_EQ(post("application/json; charset=utf-8"), 0);
  EXPECT_EQ(post("text/plain"), 415);
  EXPECT_EQ(StatusOf(Ask({host}, "POST"), Auth::kKey, {}), 415);
}

TEST(Guard, AsksForKeys) {
  const auto user = *KeyRing::Make("user", false), admin = *KeyRing::Make("admin", true);
  const auto ring = *KeyRing::Parse("{\"keys\": [" + user.entry + "," + admin.entry + "]}");
  const GuardPolicy policy{.needs_key = true};
  const HttpHeader host{"host", "localhost"};
  const auto with = [&](const std::string& key) {
    return Ask({host, {"authorization", "Bearer " + key}});
  };
  EXPECT_EQ(StatusOf(Ask({host}), Auth::kPublic, policy, &ring), 0);
  EXPECT_EQ(StatusOf(Ask({host}), Auth::kKey, policy, &ring), 401);
  EXPECT_EQ(StatusOf(Ask({host}), Auth::kKey, policy, nullptr), 401);
  EXPECT_EQ(StatusOf(with("wrong"), Auth::kKey, policy, &ring), 401);
  EXPECT_EQ(StatusOf(with(user.key), Auth::kKey, policy, &ring), 0);
  EXPECT_EQ(StatusOf(Ask({host, {"x-api-key", user.key}}), Auth::kKey, policy, &ring), 0);
  EXPECT_EQ(StatusOf(with(user.key), Auth::kAdmin, policy, &ring), 403);
  EXPECT_EQ(StatusOf(with(admin.key), Auth::kAdmin, policy, &ring), 0);
  // What is for admins stays so even where no key is needed otherwise.
  EXPECT_EQ(StatusOf(Ask({host}), Auth::kAdmin, {}, nullptr), 401);
  const auto told = [&](HttpRequest request, Auth auth, const GuardPolicy& by) {
    return Guard(request, auth, by, &ring)->message;
  };
  EXPECT_NE(told(Ask({host}), Auth::kKey, policy).find("Authorization: Bearer"), std::string::npos);
  EXPECT_EQ(told(with("wrong"), Auth::kKey, policy), "this API key is not known here");
  EXPECT_NE(told(Ask({host}), Auth::kAdmin, {}).find("--control-port"), std::string::npos)
      << "without keys there is none to ask for";
  HttpRequest named = with(user.key);
  EXPECT_FALSE(Guard(named, Auth::kKey, policy, &ring));
  EXPECT_EQ(named.key_id, "user");
}

}  // namespace
}  // namespace hearth
