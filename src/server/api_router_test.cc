// SPDX-License-Identifier: Apache-2.0
// Every door of the API, tried from outside without the right key: on real sockets, through the
// router that `hearth serve` uses.
#include "server/api_router.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "http/http_server.h"
#include "server/access/guard.h"
#include "server/all_dialects.h"
#include "testing/byte_tokenizer.h"
#include "testing/fake_backend.h"
#include "text/harmony.h"

namespace hearth {
namespace {

class ApiRouterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::FakeOptions fake;
    fake.vocab_size = tokenizer_.vocab_size();
    fake.full_blocks = fake.window_blocks = 100;
    engine_ =
        std::make_unique<Engine>(std::make_unique<testing::FakeBackend>(fake), EngineOptions());
    format_ = *MakeHarmonyFormat(tokenizer_);
    ServedModel model;
    model.name = "bytes";
    model.tokenizer = &tokenizer_;
    model.format = format_.get();
    model.max_context = 1024;
    responses_ = *ResponseStore::Open("");
    service_ = std::make_unique<TurnService>(*engine_, model);
    Router router = ApiRouter({*engine_, metrics_, *service_, AllDialects(*responses_)});
    routes_ = router.routes();
    const auto user = *KeyRing::Make("user", false), admin = *KeyRing::Make("admin", true);
    user_key_ = user.key;
    admin_key_ = admin.key;
    keys_ = *KeyRing::Parse("{\"keys\": [" + user.entry + "," + admin.entry + "]}");
    HttpOptions options;
    options.authorize = [this](HttpRequest& request, Auth auth) {
      return Guard(request, auth, {.needs_key = true}, &keys_);
    };
    auto server = HttpServer::Listen(options, std::move(router));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }
  void TearDown() override { server_.reset(); }

  // The status that a request of one connection is answered with.
  int StatusOf(const std::string& method, const std::string& path, const std::string& header) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(server_->port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    const std::string text = method + " " + path + " HTTP/1.1\r\nhost: localhost\r\n" + header +
                             "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    char buffer[12] = {};  // "HTTP/1.1 401"
    EXPECT_EQ(::recv(fd, buffer, sizeof buffer, MSG_WAITALL), static_cast<ssize_t>(sizeof buffer));
    ::close(fd);
    const std::string digits(buffer + 9, 3);
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  }
  static std::string PathOf(const Route& route) {
    std::string path = route.pattern;
    while (path.find('{') != std::string::npos) {
      path.replace(path.find('{'), path.find('}') + 1 - path.find('{'), "some-id");
    }
    return path;
  }

  const testing::ByteTokenizer tokenizer_;
  std::unique_ptr<ChatFormat> format_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ResponseStore> responses_;
  ServerMetrics metrics_{{"1", "scalar", "exact", "bytes", 1024}};
  std::unique_ptr<TurnService> service_;
  std::vector<Route> routes_;
  KeyRing keys_;
  std::string user_key_, admin_key_;
  std::unique_ptr<HttpServer> server_;
};

// Whoever adds a route that needs no key must also write it here.
const std::set<std::string> kPublic{"GET /", "GET /ui/{file}", "GET /livez", "GET /readyz"};

TEST_F(ApiRouterTest, AnswersNobodyWithoutAKeyButToSayThatItIsAlive) {
  ASSERT_GE(routes_.size(), 15u);
  for (const Route& route : routes_) {
    const std::string name = route.method + " " + route.pattern;
    const bool is_public = kPublic.contains(name);
    const std::string path = PathOf(route);
    const std::string wrong[] = {
        "",
        "authorization: Bearer \r\n",
        "authorization: Bearer " + user_key_.substr(0, user_key_.size() - 1) + "\r\n",
        "authorization: Bearer " + user_key_ + "0\r\n",
        "authorization: Basic " + user_key_ + "\r\n",
        "authorization: " + user_key_ + "\r\n",
        "x-api-key: \r\n",
        "x-api-key: user\r\n",
        "x-api-key: admin\r\nx-forwarded-for: 127.0.0.1\r\n",
    };
    for (const std::string& header : wrong) {
      EXPECT_EQ(StatusOf(route.method, path, header) == 401, !is_public) << name << " " << header;
    }
    if (route.method == "GET") {
      EXPECT_EQ(StatusOf("HEAD", path, "") == 401, !is_public) << name;
    }
    const int status = StatusOf(route.method, path, "x-api-key: " + user_key_ + "\r\n");
    EXPECT_EQ(status == 403, route.auth == Auth::kAdmin) << name << " " << status;
    EXPECT_NE(status, 401) << name;
    const int trusted = StatusOf(route.method, path, "x-api-key: " + admin_key_ + "\r\n");
    EXPECT_TRUE(trusted != 401 && trusted != 403) << name << " " << trusted;
  }
}

TEST_F(ApiRouterTest, OtherSpellingsOfAPathAreNoWayIn) {
  for (const Route& route : routes_) {
    if (kPublic.contains(route.method + " " + route.pattern)) continue;
    const std::string path = PathOf(route);
    for (const std::string& other :
         {"/" + path, path + "/", "/." + path, path + "%20", path + ";x=/livez", "/livez/.." + path,
          path + "?x=/livez", "/%2e" + path, path + "#/livez"}) {
      const int status = StatusOf(route.method, other, "");
      EXPECT_TRUE(status == 401 || status == 404 || status == 400 || status == 405)
          << route.method << " " << other << " " << status;
    }
  }
}

}  // namespace
}  // namespace hearth
