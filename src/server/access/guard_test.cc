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

TEST(Guard, RefusesHostsThatAreNone) {
  const GuardPolicy policy{.hosts = {"box.lan"}};
  for (const char* host :
       {"", "[::1].evil.example", "[::1]evil", "127.0.0.1:80@evil.example", "localhost:", "127...1",
        "127.0.0.1:99999", "localhost:80x", "box.lan:8080/", "[::1", "127.999.0.1"}) {
    EXPECT_EQ(StatusOf(Ask({{"host", host}}), Auth::kPublic, policy), 400) << host;
    HttpRequest local = Ask({{"host", host}});
    local.peer = "unix";
    EXPECT_EQ(StatusOf(local, Auth::kPublic, policy), 0) << "no page reaches a Unix socket";
  }
  EXPECT_EQ(StatusOf(Ask({{"host", "localhost"}, {"host", "evil.example"}}), Auth::kPublic, policy),
            403)
      << "every one counts, were there several";
  EXPECT_EQ(StatusOf(Ask({}), Auth::kPublic, policy), 0) << "HTTP/1.0";
  EXPECT_EQ(StatusOf(Ask({{"host", "LOCALHOST:80"}}), Auth::kPublic, policy), 0);
  EXPECT_EQ(StatusOf(Ask({{"host", "Box.Lan"}}), Auth::kPublic, policy), 0);
}

TEST(Guard, ServesNoForeignPages) {
  const GuardPolicy policy{.origins = {"http://localhost:3000"}};
  const HttpHeader host{"host", "localhost"};
  EXPECT_EQ(StatusOf(Ask({host, {"origin", "http://localhost:3000"}}), Auth::kKey, policy), 0);
  EXPECT_EQ(StatusOf(Ask({host, {"origin", "http://evil.example"}}), Auth::kKey, policy), 403);
  EXPECT_EQ(StatusOf(Ask({host, {"origin", "null"}}), Auth::kPublic, policy), 403);
}

TEST(Guard, ServesItsOwnPage) {
  const GuardPolicy policy{.hosts = {"box.lan"}};
  const auto status = [&](const char* host, const char* origin) {
    return StatusOf(Ask({{"host", host}, {"origin", origin}}), Auth::kKey, policy);
  };
  EXPECT_EQ(status("127.0.0.1:8080", "http://127.0.0.1:8080"), 0);
  EXPECT_EQ(status("localhost:8080", "http://localhost:8080"), 0);
  EXPECT_EQ(status("[::1]:8080", "http://[::1]:8080"), 0);
  EXPECT_EQ(status("box.lan", "https://box.lan"), 0);
  EXPECT_EQ(status("localhost:8080", "http://localhost:8081"), 403) << "another port";
  EXPECT_EQ(status("localhost:8080", "http://127.0.0.1:8080"), 403) << "another name";
  EXPECT_EQ(status("localhost:8080", "file://localhost:8080"), 403);
  EXPECT_EQ(status("localhost:8080", "http://localhost:8080.evil.example"), 403);
  EXPECT_EQ(status("evil.example:8080", "http://evil.example:8080"), 403) << "a rebound name";
  EXPECT_EQ(StatusOf(Ask({{"origin", "http://"}}), Auth::kKey, policy), 403) << "no host at all";
  EXPECT_EQ(status("localhost:80", "http://localhost"), 0) << "the port that http has anyway";
  EXPECT_EQ(status("localhost:80", "https://localhost"), 403);
  EXPECT_EQ(status("[::1]:8080", "http://[::1]:8080@evil.example"), 403);
}

TEST(Guard, TakesOnlyJsonFromBrowsers) {
  const GuardPolicy policy{.origins = {"http://localhost:3000"}};
  const HttpHeader host{"host", "localhost"};
  const auto post = [&](const char* type, const HttpHeader& of_browser) {
    return StatusOf(Ask({host, {"content-type", type}, of_browser}, "POST"), Auth::kKey, policy);
  };
  const HttpHeader curl{"user-agent", "curl/8"};
  EXPECT_EQ(post("application/json", curl), 0);
  EXPECT_EQ(post("application/x-www-form-urlencoded", curl), 0) << "what curl -d says";
  EXPECT_EQ(StatusOf(Ask({host}, "POST"), Auth::kKey, policy), 0);
  for (const HttpHeader& of_browser :
       {HttpHeader{"origin", "http://localhost:3000"}, HttpHeader{"sec-fetch-site", "cross-site"},
        HttpHeader{"referer", "http://evil.example/"}, HttpHeader{"cookie", "a=b"}}) {
    EXPECT_EQ(post("application/json", of_browser), 0) << of_browser.name;
    EXPECT_EQ(post("application/json; charset=utf-8", of_browser), 0) << of_browser.name;
    EXPECT_EQ(post("text/plain", of_browser), 415) << of_browser.name;
    EXPECT_EQ(post("application/x-www-form-urlencoded", of_browser), 415) << of_browser.name;
    EXPECT_EQ(StatusOf(Ask({host, of_browser}, "POST"), Auth::kKey, policy), 415);
  }
}

TEST(Loopback, IsAnAddressOfThisMachine) {
  for (const char* address : {"127.0.0.1", "127.255.0.9", "::1"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address :
       {"0.0.0.0", "::", "127...1", "127.0.0.999", "127.0.0.1:80", "", "::2"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(OriginHeaders, AreForAllowedPagesAlone) {
  const GuardPolicy policy{.origins = {"http://localhost:3000"}};
  EXPECT_TRUE(OriginHeaders(Ask({}), policy).empty());
  EXPECT_TRUE(OriginHeaders(Ask({{"origin", "http://evil.example"}}), policy).empty());
  const auto headers = OriginHeaders(Ask({{"origin", "http://localhost:3000"}}), policy);
  ASSERT_EQ(headers.size(), 3u);
  EXPECT_EQ(headers[0].name, "access-control-allow-origin");
  EXPECT_EQ(headers[0].value, "http://localhost:3000");
}

TEST(Preflights, AreAnsweredWhereverThereIsARoute) {
  Router router;
  const HttpHandler nothing = [](const HttpRequest&, const std::shared_ptr<HttpReply>&) {};
  router.Add("GET", "/a", Auth::kPublic, nothing);
  router.Add("POST", "/a", Auth::kKey, nothing);
  router.Add("POST", "/b/{id}", Auth::kAdmin, nothing);
  AddPreflights(router);
  EXPECT_EQ(router.routes().size(), 5u);
  for (const char* path : {"/a", "/b/7"}) {
    const auto found = router.Find("OPTIONS", path);
    ASSERT_TRUE(std::holds_alternative<Router::Match>(found)) << path;
    EXPECT_EQ(std::get<Router::Match>(found).route->auth, Auth::kPublic)
        << "it comes without a key";
  }
  EXPECT_TRUE(std::holds_alternative<Router::Miss>(router.Find("OPTIONS", "/c")));
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
  EXPECT_EQ(told(with("wrong"), Auth::kKey, policy),
            "invalid API key: check it for a typing error, or make a new one with `hearth key`");
  EXPECT_EQ(told(with(user.key), Auth::kAdmin, policy),
            "an admin key is required: make one with `hearth key ID --admin`");
  EXPECT_NE(told(Ask({host}), Auth::kAdmin, {}).find("--control-port"), std::string::npos)
      << "without keys there is none to ask for";
  HttpRequest named = with(user.key);
  EXPECT_FALSE(Guard(named, Auth::kKey, policy, &ring));
  EXPECT_EQ(named.key_id, "user");
}

}  // namespace
}  // namespace hearth
