// SPDX-License-Identifier: Apache-2.0
#include "http/router.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

Router Sample() {
  Router router;
  const HttpHandler none = [](HttpRequest, std::shared_ptr<HttpReply>) {};
  router.Add("GET", "/v1/models", Auth::kKey, none);
  router.Add("POST", "/v1/responses", Auth::kKey, none);
  router.Add("GET", "/v1/responses/{id}", Auth::kKey, none);
  router.Add("DELETE", "/v1/responses/{id}", Auth::kAdmin, none);
  router.Add("POST", "/v1/responses/{id}/cancel", Auth::kKey, none);
  return router;
}

TEST(Router, MatchesWholeSegments) {
  const Router router = Sample();
  const auto found = router.Find("GET", "/v1/responses/resp_1");
  ASSERT_TRUE(std::holds_alternative<Router::Match>(found));
  EXPECT_EQ(std::get<Router::Match>(found).captures, std::vector<std::string>{"resp_1"});
  EXPECT_TRUE(std::holds_alternative<Router::Match>(router.Find("POST", "/v1/responses/x/cancel")));
  EXPECT_TRUE(std::holds_alternative<Router::Match>(router.Find("HEAD", "/v1/models")));
}

// None of these may reach a handler by being "nearly" its path.
TEST(Router, KnowsNoOtherSpelling) {
  const Router router = Sample();
  for (const char* path : {"/v1/models/", "//v1/models", "/v1//models", "/V1/models",
                           "/v1/model%73", "/v1/./models", "/v1/x/../models", "/v1/responses/", "/",
                           "", "v1/models", "/v1/responses/a/b", "/v1/responses//cancel"}) {
    const auto found = router.Find("GET", path);
    ASSERT_TRUE(std::holds_alternative<Router::Miss>(found)) << path;
    EXPECT_FALSE(std::get<Router::Miss>(found).path_exists) << path;
  }
}

TEST(Router, NamesWhatWasProbablyMeant) {
  const Router router = Sample();
  const auto nearest = [&](const std::string& path) {
    return std::get<Router::Miss>(router.Find("GET", path)).nearest;
  };
  EXPECT_EQ(nearest("/models"), "/v1/models") << "the version forgotten";
  EXPECT_EQ(nearest("/v1/v1/models"), "/v1/models") << "the version twice";
  EXPECT_EQ(nearest("/v1/model"), "/v1/models");
  EXPECT_EQ(nearest("/v1/repsonses"), "/v1/responses");
  EXPECT_EQ(nearest("/v1/models/"), "/v1/models");
  EXPECT_EQ(nearest("/v1/modelsxyz"), "") << "three letters are another word";
  EXPECT_EQ(nearest("/v1"), "");
  EXPECT_EQ(nearest("/"), "");
  EXPECT_EQ(nearest("/v1/models" + std::string(2000, '/')), "") << "no work for long nonsense";
}

TEST(Router, TellsOtherMethodsApart) {
  const auto found = Sample().Find("PUT", "/v1/responses/a");
  ASSERT_TRUE(std::holds_alternative<Router::Miss>(found));
  EXPECT_TRUE(std::get<Router::Miss>(found).path_exists);
  EXPECT_EQ(std::get<Router::Miss>(found).allowed, "GET, DELETE");
}

TEST(Router, BodiesMayBeLongerWhereARouteSaysSo) {
  Router router;
  const HttpHandler handler = [](const HttpRequest&, const std::shared_ptr<HttpReply>&) {};
  router.Add("POST", "/files", Auth::kKey, handler, 1000);
  router.Add("GET", "/files", Auth::kKey, handler);
  EXPECT_EQ(router.MaxBody("POST /files HTTP/1.1\r\n", 10), 1000u);
  EXPECT_EQ(router.MaxBody("POST /files?x=y HTTP/1.1\r\n", 10), 1000u);
  for (const char* other : {"GET /files HTTP/1.1", "POST /files/ HTTP/1.1", "POST /file HTTP/1.1",
                            "POST /filesx HTTP/1.1", "POST /files", "POST", ""}) {
    EXPECT_EQ(router.MaxBody(other, 10), 10u) << other;
  }
}

TEST(RouterDeath, SameRouteTwiceIsABug) {
  Router router = Sample();
  EXPECT_DEATH(router.Add("GET", "/v1/models", Auth::kPublic,
                          [](HttpRequest, std::shared_ptr<HttpReply>) {}),
               "");
}

}  // namespace
}  // namespace hearth
