// SPDX-License-Identifier: Apache-2.0
#include "server/ui/page_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Answer : HttpReply {
  void Send(int with, Headers given, std::string text) override {
    status = with;
    for (HttpHeader& header : given) headers[header.name] = header.value;
    body = std::move(text);
  }
  void StartStream(int, Headers) override {}
  void Write(std::string) override {}
  void End() override {}
  void Abort() override {}
  size_t unsent_bytes() const override { return 0; }
  void OnGone(std::function<void()>) override {}

  int status = 0;
  std::map<std::string, std::string> headers;
  std::string body;
};

constexpr PageFile kFiles[] = {{"/", "text/html", "aa", "<html>", "zipped page"},
                               {"/ui/a-1.js", "text/javascript", "bb", "code()", "zipped code"}};

Answer Get(const std::string& path, std::vector<HttpHeader> headers = {},
           std::span<const PageFile> files = kFiles) {
  Router router;
  AddFrontPage(router, files);
  const auto found = router.Find("GET", path);
  EXPECT_TRUE(std::holds_alternative<Router::Match>(found)) << path;
  HttpRequest request;
  request.method = "GET";
  request.path = path;
  request.headers = std::move(headers);
  auto answer = std::make_shared<Answer>();
  std::get<Router::Match>(found).route->handler(std::move(request), answer);
  return *answer;
}

const HttpHeader kHtml{"accept", "text/html,application/xhtml+xml,*/*;q=0.8"};
const HttpHeader kGzip{"accept-encoding", "gzip, deflate, br"};

TEST(PageRoutes, ShowBrowsersThePageAndOthersALine) {
  EXPECT_EQ(Get("/", {kHtml}).body, "<html>");
  EXPECT_EQ(Get("/", {kHtml}).headers["content-type"], "text/html");
  for (const HttpHeader& accept :
       {HttpHeader{"accept", "*/*"}, HttpHeader{"accept", ""},
        HttpHeader{"accept", "application/json"}, HttpHeader{"accept", "text/html;q=0"}}) {
    const Answer answer = Get("/", {accept});
    EXPECT_THAT(answer.body, HasSubstr("is running")) << accept.value;
    EXPECT_THAT(answer.body, Not(HasSubstr("without the web page")));
  }
}

TEST(PageRoutes, SayThatThereIsNoPage) {
  const Answer answer = Get("/", {kHtml}, {});
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("built without the web page"));
  EXPECT_EQ(Get("/ui/a-1.js", {}, {}).status, 404);
}

TEST(PageRoutes, SendGzipToThoseWhoTakeIt) {
  const Answer packed = Get("/ui/a-1.js", {kGzip});
  EXPECT_EQ(packed.body, "zipped code");
  EXPECT_EQ(packed.headers.at("content-encoding"), "gzip");
  for (const char* refused : {"br", "gzip;q=0", "gzip;q=0.0", "", "gzipped"}) {
    const Answer plain = Get("/ui/a-1.js", {{"accept-encoding", refused}});
    EXPECT_EQ(plain.body, "code()") << refused;
    EXPECT_FALSE(plain.headers.contains("content-encoding")) << refused;
  }
  EXPECT_EQ(Get("/ui/a-1.js", {{"accept-encoding", "br, gzip;q=0.5"}}).body, "zipped code");
}

TEST(PageRoutes, KeepNothingThatChangedAndSendNothingTwice) {
  const std::string plain = Get("/", {kHtml}).headers["etag"];
  const std::string packed = Get("/", {kHtml, kGzip}).headers["etag"];
  EXPECT_EQ(plain, "\"aa\"");
  EXPECT_NE(plain, packed) << "other bytes, another strong tag";
  EXPECT_EQ(Get("/", {kHtml, kGzip, {"if-none-match", packed}}).status, 304);
  EXPECT_EQ(Get("/", {kHtml, kGzip, {"if-none-match", packed}}).body, "");
  EXPECT_EQ(Get("/", {kHtml, kGzip, {"if-none-match", plain}}).status, 200);
  EXPECT_EQ(Get("/", {kHtml}).headers["cache-control"], "no-cache");
  EXPECT_THAT(Get("/ui/a-1.js").headers["cache-control"], HasSubstr("immutable"));
}

TEST(PageRoutes, AllowThePageNothingElse) {
  for (const char* path : {"/", "/ui/a-1.js"}) {
    Answer answer = Get(path, {kHtml});
    const std::string policy = answer.headers["content-security-policy"];
    for (const char* rule :
         {"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'",
          "frame-ancestors 'none'", "form-action 'none'", "require-trusted-types-for 'script'"}) {
      EXPECT_THAT(policy, HasSubstr(rule)) << path;
    }
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(answer.headers["x-content-type-options"], "nosniff");
    EXPECT_EQ(answer.headers["referrer-policy"], "no-referrer");
    EXPECT_EQ(answer.headers["cross-origin-resource-policy"], "same-origin");
  }
}

TEST(PageRoutes, HaveNoOtherFiles) {
  for (const char* path : {"/ui/b.js", "/ui/..", "/ui/a-1.js%00", "/ui/%2e%2e"}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
}

}  // namespace
}  // namespace hearth
