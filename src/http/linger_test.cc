// SPDX-License-Identifier: Apache-2.0
// Clients that are still sending when their answer comes: they get it whole, and none of them keeps
// its connection beyond the bounds.
#include "http/linger.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "testing/socket_client.h"
#include "testing/temp_dir.h"
#include "testing/tls.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Client = testing::SocketClient;

constexpr size_t kMiB = size_t{1} << 20;
const std::string kEcho = "POST /echo HTTP/1.1\r\nHost: a\r\n";

std::string Announced(size_t length) {
  return kEcho + "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

// One answer with this status, and as many bytes behind its head as the head says.
::testing::AssertionResult IsWhole(const std::string& got, int status) {
  const size_t end = got.find("\r\n\r\n"), at = got.find("content-length: ");
  if (got.rfind("HTTP/1.1 " + std::to_string(status) + " ", 0) != 0 || end == got.npos ||
      at > end || got.size() - end - 4 != std::stoul(got.substr(at + 16))) {
    return ::testing::AssertionFailure()
           << "not one whole answer " << status << ": '" << got << "'";
  }
  return ::testing::AssertionSuccess();
}

class LingerTest : public ::testing::Test {
 protected:
  void Listen(HttpOptions options = {}) {
    Router router;
    router.Add("POST", "/echo", Auth::kPublic, [](HttpRequest r, std::shared_ptr<HttpReply> reply) {
      reply->Send(200, {}, std::to_string(r.body.size()));
    });
    router.Add("POST", "/secret", Auth::kKey, [](HttpRequest, std::shared_ptr<HttpReply> reply) {
      reply->Send(200, {}, "secret");
    });
    auto server = HttpServer::Listen(std::move(options), std::move(router));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }
  // Sends all of it before it reads a byte, as many libraries do.
  static void ExpectWhole(Client& client, const std::string& bytes, int status) {
    ASSERT_EQ(client.Send(bytes), bytes.size()) << status;
    EXPECT_TRUE(IsWhole(client.ReadAll(), status));
    EXPECT_TRUE(client.closed() && !client.was_reset()) << status;
  }
  bool AllGoneWithin(milliseconds limit) {
    const auto end = Clock::now() + limit;
    while (server_->counts().connections_open > 0 && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(5));
    }
    return server_->counts().connections_open == 0;
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(LingerTest, ABodyBeyondTheLimitIsAnsweredHoweverMuchOfItIsSent) {
  Listen();
  const size_t limit = HttpLimits().max_body_bytes;
  const std::string body(8 * kMiB, 'x');
  for (int i = 0; i < 30; ++i) {
    for (const size_t length : {limit + 1, 8 * kMiB}) {
      Client client(server_->port());
      ExpectWhole(client, Announced(length) + body.substr(0, length), 413);
      if (HasFatalFailure()) return;
    }
  }
}

// As above, in pieces that the server reads one by one: what counts is bytes, not reads.
TEST_F(LingerTest, SmallPiecesCountWithTheirOwnSize) {
  HttpOptions options;
  options.limits.max_body_bytes = 100'000;
  Listen(options);
  Client client(server_->port());
  client.Send(Announced(110'000));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(client.Send(std::string(110, 'x')), 110u) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  EXPECT_TRUE(IsWhole(client.ReadAll(), 413));
  EXPECT_TRUE(client.closed() && !client.was_reset());
}

// Longer than a busy machine keeps a client from running.
TEST_F(LingerTest, AClientMayPauseInItsBody) {
  Listen();
  Client client(server_->port());
  client.Send(Announced(5 * kMiB));
  client.Send(std::string(kMiB, 'x'));
  std::this_thread::sleep_for(milliseconds(1500));
  ExpectWhole(client, std::string(4 * kMiB, 'x'), 413);
}

struct Early {
  std::string bytes;
  int status;
};

// Every answer that does not wait for the rest of the request.
std::vector<Early> EarlyAnswers() {
  const std::string chunked = kEcho + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string sized = "Host: a\r\nContent-Length: 1000000\r\n";
  std::vector<Early> all = {
      {Announced(6 * kMiB), 413},
      {chunked + "7fffffff\r\n", 413},
      {chunked + "10\r\n0123456789abcdef\r\nnonsense\r\n", 400},
      {chunked + "2;evil=1\r\n", 400},
      {chunked + std::string(100'000, '0'), 400},
      {kEcho + "Content-Length: 9\r\nContent-Length: 9\r\n\r\n", 400},
      {"POST /secret HTTP/1.1\r\n" + sized + "\r\n", 401},
      {"POST /nowhere HTTP/1.1\r\n" + sized + "\r\n", 404},
      {"PUT /echo HTTP/1.1\r\n" + sized + "\r\n", 405},
      {"POST /" + std::string(3000, 'a') + " HTTP/1.1\r\n" + sized + "\r\n", 414},
      {kEcho + "Expect: cookies\r\n\r\n", 417},
      {"POST /echo HTTP/1.1\r\nX: " + std::string(40'000, 'a') + "\r\n" + sized + "\r\n", 431},
      {"POST /echo HTTP/1.1\r\nX: " + std::string(40'000, 'a'), 431},
      {kEcho + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {"POST /echo HTTP/3.0\r\n" + sized + "\r\n", 505},
      // Answered in full, but the last answer of its connection, with more behind it.
      {kEcho + "Connection: close\r\nContent-Length: 0\r\n\r\n", 200},
  };
  for (Early& early : all) early.bytes.append(6 * kMiB, 'x');
  return all;
}

TEST_F(LingerTest, EveryEarlyAnswerArrivesWhole) {
  Listen();
  for (const Early& early : EarlyAnswers()) {
    for (int i = 0; i < 3; ++i) {
      SCOPED_TRACE(early.bytes.substr(0, 80));
      Client client(server_->port());
      ExpectWhole(client, early.bytes, early.status);
    }
  }
}

TEST_F(LingerTest, EveryEarlyAnswerArrivesWholeOverAUnixSocket) {
  const testing::TempDir dir;
  HttpOptions options;
  options.unix_path = dir.Path("s");
  Listen(options);
  for (const Early& early : EarlyAnswers()) {
    SCOPED_TRACE(early.bytes.substr(0, 80));
    Client client(options.unix_path);
    ExpectWhole(client, early.bytes, early.status);
  }
}

// Who asks first is refused instead of told to continue, and need not send the body to close in
// order; who does not wait for the permission is read like any other.
TEST_F(LingerTest, ARefusedExpectationNeedsNoBody) {
  Listen();
  const std::string head = kEcho + "Expect: 100-continue\r\nContent-Length: 8388608\r\n\r\n";
  Client patient(server_->port());
  ExpectWhole(patient, head, 413);
  patient.Close();
  EXPECT_TRUE(AllGoneWithin(HttpTimes().linger_silence / 2));
  Client eager(server_->port());
  ExpectWhole(eager, head + std::string(8 * kMiB, 'x'), 413);
}

TEST_F(LingerTest, AClientThatTricklesIsCutAtTheBound) {
  HttpOptions options;
  options.times.linger = milliseconds(400);
  options.times.linger_silence = milliseconds(5000);
  Listen(options);
  Client client(server_->port());
  const auto start = Clock::now();
  client.Send(Announced(5 * kMiB));
  EXPECT_TRUE(IsWhole(client.ReadUntil("}}"), 413));
  while (client.Send("x") == 1 && Clock::now() - start < milliseconds(10'000)) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_GE(Clock::now() - start, options.times.linger);
  EXPECT_LT(Clock::now() - start, milliseconds(4000));  // less than a silence, and far from ten
  EXPECT_TRUE(AllGoneWithin(milliseconds(1000)));
}

TEST_F(LingerTest, ASilentClientIsCutSooner) {
  HttpOptions options;
  options.times.linger = milliseconds(60'000);
  options.times.linger_silence = milliseconds(200);
  Listen(options);
  Client client(server_->port());
  client.Send(Announced(5 * kMiB));
  EXPECT_TRUE(IsWhole(client.ReadAll(), 413));
  EXPECT_TRUE(AllGoneWithin(milliseconds(5000)));
}

TEST_F(LingerTest, AClientThatNeverEndsIsCutAtTheBytes) {
  HttpOptions options;
  options.max_linger_bytes = 2 * kMiB;
  Listen(options);
  Client client(server_->port());
  client.Send(Announced(5 * kMiB));
  const std::string piece(64 << 10, 'x');
  size_t sent = 0;
  // Beside what is discarded, what the two sockets hold: a few MiB.
  while (sent < 64 * kMiB) {
    const size_t n = client.Send(piece);
    sent += n;
    if (n < piece.size()) break;
  }
  EXPECT_GE(sent, options.max_linger_bytes);
  EXPECT_LT(sent, 64 * kMiB);
  EXPECT_TRUE(AllGoneWithin(milliseconds(1000)));
}

TEST_F(LingerTest, LingeringCountsAgainstTheConnectionLimit) {
  HttpOptions options;
  options.max_connections_per_peer = 1;
  Listen(options);
  Client client(server_->port());
  client.Send(Announced(5 * kMiB));
  EXPECT_TRUE(IsWhole(client.ReadAll(), 413));
  EXPECT_EQ(server_->counts().connections_open, 1);
  Client other(server_->port());
  EXPECT_EQ(other.ReadAll(), "");
  EXPECT_EQ(server_->counts().connections_refused, 1);
  client.Close();
  EXPECT_TRUE(AllGoneWithin(milliseconds(2000)));
  Client next(server_->port());
  next.Send(kEcho + "Content-Length: 2\r\n\r\nhi");
  EXPECT_TRUE(IsWhole(next.ReadUntil("\r\n\r\n2"), 200));
}

TEST_F(LingerTest, TheServerEndsWithoutWaitingForIt) {
  Listen();
  Client client(server_->port());
  client.Send(Announced(5 * kMiB));
  EXPECT_TRUE(IsWhole(client.ReadAll(), 413));
  std::atomic<bool> stop{false};
  std::thread trickle([&] {
    while (!stop && client.Send("x") == 1) std::this_thread::sleep_for(milliseconds(10));
  });
  const auto start = Clock::now();
  server_->Drain();
  server_.reset();
  EXPECT_LT(Clock::now() - start, milliseconds(900));
  stop = true;
  trickle.join();
}

TEST_F(LingerTest, EveryEarlyAnswerArrivesWholeOverTls) {
  const testing::TempDir dir;
  HttpOptions options;
  options.tls = testing::MakeTlsFiles(dir);
  Listen(options);
  for (const Early& early : EarlyAnswers()) {
    SCOPED_TRACE(early.bytes.substr(0, 80));
    testing::TlsClient client(server_->port());
    EXPECT_TRUE(client.Send(early.bytes));
    bool in_order = false;
    EXPECT_TRUE(IsWhole(client.ReadAll(in_order), early.status));
    EXPECT_TRUE(in_order);
  }
  EXPECT_TRUE(AllGoneWithin(milliseconds(2000)));
}

TEST_F(LingerTest, PlainHttpOnATlsPortIsAnsweredWhole) {
  const testing::TempDir dir;
  HttpOptions options;
  options.tls = testing::MakeTlsFiles(dir);
  Listen(options);
  for (int i = 0; i < 5; ++i) {
    Client client(server_->port());
    ExpectWhole(client, Announced(6 * kMiB) + std::string(6 * kMiB, 'x'), 400);
  }
}

}  // namespace
}  // namespace hearth
