// SPDX-License-Identifier: Apache-2.0
// What the server tells whoever counts bytes, on real sockets.
#include "http/request_hold.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "http/http_server.h"
#include "testing/socket_client.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using Client = testing::SocketClient;

// Counts, and refuses what it is told to refuse.
struct Books final : RequestBudget {
  struct Hold final : RequestHold {
    explicit Hold(Books& b) : books(b) { ++books.num_open; }
    ~Hold() override { --books.num_open; }
    std::optional<HttpRefusal> SetBody(size_t bytes) override {
      books.body = bytes;
      books.most_body = std::max<size_t>(books.most_body, bytes);
      if (bytes > books.max_body) return HttpRefusal{429, "too much", "", 7};
      return std::nullopt;
    }
    void SetReply(size_t bytes) override {
      books.reply = bytes;
      books.most_reply = std::max<size_t>(books.most_reply, bytes);
    }
    Books& books;
  };
  Opened Open(const HttpRequest&, std::optional<uint64_t> bytes,
              std::function<void()> how_to_cut) override {
    announced = bytes.value_or(0);
    const MutexLock lock(mu);
    cut = std::move(how_to_cut);
    if (announced > max_announced) return {nullptr, HttpRefusal{503, "full", "", 3}};
    return {std::make_shared<Hold>(*this)};
  }
  void Cut() {
    const MutexLock lock(mu);
    cut();
  }

  Mutex mu;
  std::function<void()> cut HEARTH_GUARDED_BY(mu);
  std::atomic<size_t> body{0}, most_body{0}, reply{0}, most_reply{0}, announced{0};
  std::atomic<int> num_open{0};
  size_t max_body = SIZE_MAX, max_announced = SIZE_MAX;
};

std::string Post(const std::string& path, size_t length, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(length) +
         "\r\n\r\n" + body;
}

class RequestHoldTest : public ::testing::Test {
 protected:
  void Listen() {
    Router router;
    const auto handler = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      seen_body_ = books_.body.load();
      {
        const HttpRequest gone = std::move(request);
      }
      const MutexLock lock(mu_);
      reply_ = std::move(reply);
      here_.NotifyAll();
    };
    router.Add("POST", "/work", Auth::kKey, handler);
    router.Add("POST", "/public", Auth::kPublic,
               [](HttpRequest, std::shared_ptr<HttpReply> reply) { reply->Send(200, {}, "ok"); });
    HttpOptions options;
    options.budget = &books_;
    options.authorize = [](HttpRequest&, Auth) { return std::nullopt; };
    auto server = HttpServer::Listen(std::move(options), std::move(router));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }
  std::shared_ptr<HttpReply> AwaitReply() {
    const MutexLock lock(mu_);
    EXPECT_TRUE(here_.WaitFor(mu_, milliseconds(5000),
                              [this]() HEARTH_REQUIRES(mu_) { return reply_ != nullptr; }));
    return std::exchange(reply_, nullptr);
  }
  static bool Eventually(const std::function<bool()>& is) {
    for (int i = 0; i < 500 && !is(); ++i) std::this_thread::sleep_for(milliseconds(10));
    return is();
  }

  Books books_;
  std::atomic<size_t> seen_body_{0};
  Mutex mu_;
  CondVar here_;
  std::shared_ptr<HttpReply> reply_ HEARTH_GUARDED_BY(mu_);
  std::shared_ptr<HttpReply> reply_for_nobody_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(RequestHoldTest, TellsWhatABodyAndAnAnswerHold) {
  Listen();
  Client client(server_->port());
  client.Send(Post("/work", 1000, std::string(400, 'x')));
  EXPECT_TRUE(Eventually([this] { return books_.body == 400; }));
  EXPECT_EQ(books_.announced, 1000u);
  client.Send(std::string(600, 'y'));
  auto reply = AwaitReply();
  EXPECT_EQ(seen_body_, 1000u);
  EXPECT_EQ(books_.body, 0u) << "the handler is done with it";
  reply->Send(200, {}, std::string(5000, 'z'));
  client.ReadUntil("zz");
  EXPECT_GE(books_.most_reply, 5000u);
  EXPECT_TRUE(Eventually([this] { return books_.reply == 0; }));
  reply.reset();
  EXPECT_TRUE(Eventually([this] { return books_.num_open == 0; })) << "between two requests";
}

TEST_F(RequestHoldTest, RefusesBeforeABodyIsRead) {
  books_.max_announced = 999;
  Listen();
  Client client(server_->port());
  client.Send(Post("/work", 1000, ""));
  const std::string got = client.ReadUntil("full");
  EXPECT_NE(got.find("503"), std::string::npos) << got;
  EXPECT_NE(got.find("retry-after: 3\r\n"), std::string::npos) << got;
  EXPECT_EQ(books_.most_body, 0u);
  EXPECT_EQ(server_->counts().refusals_total, 1);
}

TEST_F(RequestHoldTest, RefusesABodyThatGrows) {
  books_.max_body = 2000;
  Listen();
  Client client(server_->port());
  client.Send("POST /work HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string got;
  for (int i = 0; i < 10; ++i) client.Send("400\r\n" + std::string(1024, 'x') + "\r\n");
  got = client.ReadUntil("too much");
  EXPECT_NE(got.find("429"), std::string::npos) << got;
  EXPECT_NE(got.find("retry-after: 7\r\n"), std::string::npos) << got;
  EXPECT_TRUE(Eventually([this] { return books_.num_open == 0; })) << "also while it lingers";
}

TEST_F(RequestHoldTest, DoesNotAskForPublicRoutes) {
  books_.max_announced = 0;
  Listen();
  Client client(server_->port());
  client.Send(Post("/public", 2, "hi"));
  EXPECT_NE(client.ReadUntil("ok").find("200"), std::string::npos);
}

TEST_F(RequestHoldTest, CutsFromAnyThread) {
  Listen();
  Client client(server_->port());
  client.Send(Post("/work", 2, "hi"));
  auto reply = AwaitReply();
  std::atomic<bool> gone{false};
  reply->OnGone([&] { gone = true; });
  EXPECT_FALSE(reply->is_gone());
  reply->StartStream(200, {});
  reply->Write("part");
  client.ReadUntil("part");
  books_.Cut();
  EXPECT_EQ(client.ReadAll().find("0\r\n\r\n"), std::string::npos) << "not as if it had ended";
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(Eventually([&] { return gone.load(); }));
  EXPECT_TRUE(reply->is_gone());
  reply->Write("nobody reads this");
  EXPECT_EQ(books_.reply, 0u);
  books_.Cut();  // nothing is left to cut
  reply.reset();
  server_.reset();
  books_.Cut();
}

TEST_F(RequestHoldTest, AnAnswerToNobodyHoldsNothing) {
  Listen();
  {
    Client client(server_->port());
    client.Send(Post("/work", 2, "hi"));
    reply_for_nobody_ = AwaitReply();
  }
  EXPECT_TRUE(Eventually([this] { return reply_for_nobody_->is_gone(); }));
  reply_for_nobody_->Send(200, {}, std::string(1 << 20, 'x'));
  EXPECT_EQ(books_.reply, 0u);
  EXPECT_EQ(reply_for_nobody_->unsent_bytes(), 0u);
  reply_for_nobody_.reset();
}

}  // namespace
}  // namespace hearth
