// SPDX-License-Identifier: Apache-2.0
// The server on real sockets: framing, limits, deadlines, streams, leaving clients.
#include "http/http_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "testing/socket_client.h"

namespace hearth {
namespace {

using std::chrono::milliseconds;
using Client = testing::SocketClient;

std::string Post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

class HttpServerTest : public ::testing::Test {
 protected:
  void Listen(HttpOptions options = {}) {
    Router router;
    router.Add("POST", "/echo", Auth::kPublic, [](HttpRequest r, std::shared_ptr<HttpReply> reply) {
      reply->Send(200, {{"content-type", "text/plain"}}, "<" + r.body + ">");
    });
    router.Add("GET", "/secret", Auth::kKey, [](HttpRequest, std::shared_ptr<HttpReply> reply) {
      reply->Send(200, {}, "secret");
    });
    router.Add("GET", "/stream", Auth::kPublic,
               [this](HttpRequest, std::shared_ptr<HttpReply> reply) {
                 reply->OnGone([this] { ++gone_; });
                 const MutexLock lock(mu_);
                 reply_ = reply;
                 here_.NotifyAll();
               });
    router.Add("GET", "/no-memory", Auth::kPublic,
               [](HttpRequest, std::shared_ptr<HttpReply>) { throw std::bad_alloc(); });
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

  Mutex mu_;
  CondVar here_;
  std::shared_ptr<HttpReply> reply_ HEARTH_GUARDED_BY(mu_);
  std::atomic<int> gone_{0};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, KeepsAConnectionForManyRequests) {
  Listen();
  Client client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.Send(Post("/echo", "hi" + std::to_string(i)));
    EXPECT_NE(client.ReadUntil(">").find("<hi" + std::to_string(i) + ">"), std::string::npos);
  }
  EXPECT_FALSE(client.closed());
  EXPECT_EQ(server_->counts().connections_total, 1);
  EXPECT_EQ(server_->counts().requests_total, 3);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Listen();
  Client client(server_->port());
  client.Send(Post("/echo", "a") + Post("/echo", "b") + Post("/echo", "c"));
  const std::string got = client.ReadUntil("<c>");
  EXPECT_LT(got.find("<a>"), got.find("<b>"));
  EXPECT_LT(got.find("<b>"), got.find("<c>"));
}

// Every way of cutting a request into packets is the same request.
TEST_F(HttpServerTest, TakesARequestInAnyPieces) {
  Listen();
  const std::string plain = Post("/echo", "hello");
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
  for (const std::string& bytes : {plain, chunked}) {
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      Client client(server_->port());
      client.Send(bytes.substr(0, cut));
      if (cut % 7 == 0) std::this_thread::sleep_for(milliseconds(2));
      client.Send(bytes.substr(cut));
      ASSERT_NE(client.ReadUntil(">").find("<hello>"), std::string::npos) << cut;
    }
  }
}

// As above, with every byte in a packet of its own: more than one piece of a chunk's line at a
// time.
TEST_F(HttpServerTest, TakesARequestByteByByte) {
  Listen();
  Client client(server_->port());
  for (const char byte :
       std::string("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "2\r\nhe\r\n3\r\nllo\r\n0\r\nx: y\r\n\r\n")) {
    client.Send(std::string(1, byte));
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_NE(client.ReadUntil(">").find("<hello>"), std::string::npos);
}

TEST_F(HttpServerTest, RefusesBadFramingAndCloses) {
  Listen();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  struct Case {
    std::string bytes;
    const char* status;
  };
  const Case cases[] = {
      {"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n", " 400 "},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
       " 400 "},
      {head + "-2\r\nab\r\n0\r\n\r\n", " 400 "},
      {head + "2;evil=1\r\nab\r\n0\r\n\r\n", " 400 "},
      {head + "2\nab\r\n0\r\n\r\n", " 400 "},
      {head + "ffffffffffffffff1\r\nab\r\n", " 400 "},
      {head + "7fffffff\r\nab\r\n", " 413 "},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n", " 413 "},
      {"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", " 404 "},
      {"DELETE /echo HTTP/1.1\r\nHost: a\r\n\r\n", " 405 "},
      {"GET /secret HTTP/1.1\r\nHost: a\r\n\r\n", " 401 "},
      {"GET /" + std::string(40000, 'a'), " 431 "},
  };
  for (const Case& c : cases) {
    Client client(server_->port());
    client.Send(c.bytes);
    const std::string got = client.ReadAll();
    EXPECT_NE(got.find(c.status), std::string::npos) << c.bytes.substr(0, 120) << "\n" << got;
    EXPECT_TRUE(client.closed());
  }
}

// Every way to a refusal, with somebody who looks at all of it.
TEST_F(HttpServerTest, RefusalsAreWholeWhereverTheyAreMade) {
  HttpOptions options;
  options.describe_refusal = [](const HttpRefusal& r) {
    return "(" + r.message + "|" + r.path + ")";
  };
  Listen(options);
  const std::string echo = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  const std::pair<std::string, const char*> cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", "(exactly one host header is required|)"},
      {"GET /" + std::string(40000, 'a'), "(the request headers are too long|)"},
      {echo + "Content-Length: 5000000\r\n\r\n", " bytes allowed|)"},
      {echo + "Connection: \"\r\n\r\n", "(malformed request|)"},
      {"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", "(Not found|/nowhere)"},
      {"GET /secret HTTP/1.1\r\nHost: a\r\n\r\n", "(an API key is required|/secret)"},
      {echo + "Transfer-Encoding: chunked\r\n\r\nx\r\n", "(malformed chunked request body|/echo)"},
      {echo + "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n", " bytes allowed|/echo)"},
  };
  for (const auto& [bytes, wanted] : cases) {
    Client client(server_->port());
    client.Send(bytes);
    const std::string got = client.ReadAll();
    EXPECT_NE(got.find(wanted), std::string::npos) << bytes.substr(0, 80) << "\n" << got;
  }
}

TEST_F(HttpServerTest, CountsChunksNotOnlyBytes) {
  HttpOptions options;
  options.limits.max_chunks = 100;
  Listen(options);
  Client client(server_->port());
  std::string bytes = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 101; ++i) bytes += "1\r\na\r\n";
  client.Send(bytes);
  EXPECT_NE(client.ReadAll().find(" 400 "), std::string::npos);
}

// Neither is part of the body, so its limit does not bound them.
TEST_F(HttpServerTest, EndsChunkSizesAndTrailersThatNeverEnd) {
  Listen();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* start : {"", "0", "1\r\na\r\n", "0\r\nX: ", "0\r\nX: y\r\n"}) {
    Client client(server_->port());
    client.Send(head + start + std::string(200 << 10, '0'));
    EXPECT_NE(client.ReadAll().find(" 400 "), std::string::npos) << start;
    EXPECT_TRUE(client.closed());
  }
}

TEST_F(HttpServerTest, EndsSlowHeadsAndBodies) {
  HttpOptions options;
  options.times.head = milliseconds(150);
  options.times.idle = milliseconds(150);
  options.times.body_grace = milliseconds(150);
  Listen(options);
  Client silent(server_->port()), half(server_->port()), body(server_->port());
  half.Send("GET / HTT");
  body.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(half.ReadAll(), "");
  EXPECT_TRUE(half.closed());
  EXPECT_EQ(body.ReadAll(), "");
  EXPECT_TRUE(body.closed());
}

TEST_F(HttpServerTest, TellsAClientOfHttpsAtOnce) {
  Listen();  // heads have ten seconds here
  Client client(server_->port());
  // The first bytes of a ClientHello: a record of type 22, version 3.1, 512 bytes.
  client.Send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  const std::string answer = client.ReadUntil("http://", milliseconds(3000));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("does not speak TLS: use http://"), std::string::npos) << answer;
}

TEST_F(HttpServerTest, SaysWhatToDoAboutAPortThatCannotBeHad) {
  Listen();
  const auto told = [](HttpOptions options) {
    return HttpServer::Listen(std::move(options), Router()).status().message();
  };
  HttpOptions taken;
  taken.port = static_cast<uint16_t>(server_->port());
  EXPECT_NE(told(taken).find("Address already in use; stop the program"), std::string::npos);
  HttpOptions elsewhere;
  elsewhere.host = "192.0.2.1";  // of no machine: kept for documentation
  EXPECT_NE(told(elsewhere).find("this machine does not have this address"), std::string::npos);
  HttpOptions wrong;
  wrong.host = "example";
  EXPECT_NE(told(wrong).find("expected one like 127.0.0.1"), std::string::npos);
}

TEST_F(HttpServerTest, StreamsInChunks) {
  Listen();
  Client client(server_->port());
  client.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto reply = AwaitReply();
  reply->StartStream(200, {{"content-type", "text/event-stream"}});
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("transfer-encoding: chunked"), std::string::npos);
  reply->Write("one");
  EXPECT_EQ(client.ReadUntil("one\r\n"), "3\r\none\r\n");
  std::thread other([&] { reply->Write("two"); });
  other.join();
  EXPECT_EQ(client.ReadUntil("two\r\n"), "3\r\ntwo\r\n");
  reply->End();
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  client.Send(Post("/echo", "again"));
  EXPECT_NE(client.ReadUntil(">").find("<again>"), std::string::npos);
  EXPECT_EQ(gone_, 0);
}

TEST_F(HttpServerTest, TellsWhenTheClientLeaves) {
  Listen();
  auto client = std::make_unique<Client>(server_->port());
  client->Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  auto reply = AwaitReply();
  client.reset();  // before the answer has begun
  EXPECT_TRUE(Eventually([this] { return gone_ == 1; }));
  client = std::make_unique<Client>(server_->port());
  client->Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n" + Post("/echo", "more"));
  reply = AwaitReply();
  reply->StartStream(200, {});
  reply->Write("x");
  client->ReadUntil("x");
  client.reset();  // in the middle, with another request already sent
  EXPECT_TRUE(Eventually([this] { return gone_ == 2; }));
  reply->Write("dropped");
  reply->End();
  EXPECT_TRUE(Eventually([this] { return server_->counts().connections_open == 0; }));
}

// A stream that breaks must not look like one that ended.
TEST_F(HttpServerTest, AbortCutsTheConnection) {
  Listen();
  Client client(server_->port());
  client.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto reply = AwaitReply();
  reply->StartStream(200, {});
  reply->Write("part");
  client.ReadUntil("part");
  reply->Abort();
  EXPECT_EQ(client.ReadAll().find("0\r\n\r\n"), std::string::npos);
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, CutsAReaderThatNeverReads) {
  HttpOptions options;
  options.max_unsent_bytes = 1 << 20;
  options.times.write_stall = milliseconds(300);
  Listen(options);
  Client client(server_->port());
  client.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto reply = AwaitReply();
  reply->StartStream(200, {});
  for (int i = 0; i < 64 && gone_ == 0; ++i) {
    reply->Write(std::string(256 << 10, 'x'));
    EXPECT_LE(reply->unsent_bytes(), (1u << 20) + (512u << 10));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(Eventually([this] { return gone_ == 1; }));
}

TEST_F(HttpServerTest, HoldsItsConnectionCaps) {
  HttpOptions options;
  options.max_connections_per_peer = 4;
  Listen(options);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<Client>(server_->port()));
  EXPECT_TRUE(Eventually([this] { return server_->counts().connections_open == 4; }));
  Client extra(server_->port());
  EXPECT_EQ(extra.ReadAll(), "");
  EXPECT_TRUE(extra.closed());
  clients.clear();
  EXPECT_TRUE(Eventually([this] { return server_->counts().connections_open == 0; }));
  Client later(server_->port());
  later.Send(Post("/echo", "in"));
  EXPECT_NE(later.ReadUntil(">").find("<in>"), std::string::npos);
}

TEST_F(HttpServerTest, AnswersHeadHttp10AndContinue) {
  Listen();
  Client old(server_->port());
  old.Send("POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_NE(old.ReadAll().find("<hi>"), std::string::npos);
  EXPECT_TRUE(old.closed());
  Client patient(server_->port());
  patient.Send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_NE(patient.ReadUntil("\r\n\r\n").find("100 Continue"), std::string::npos);
  patient.Send("hi");
  EXPECT_NE(patient.ReadUntil(">").find("<hi>"), std::string::npos);
}

// Engines answer late: a handler's reply may be written to when the server is no more.
TEST_F(HttpServerTest, AReplyOutlivesItsServer) {
  Listen();
  Client client(server_->port());
  client.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::shared_ptr<HttpReply> reply = AwaitReply();
  ASSERT_NE(reply, nullptr);
  reply->StartStream(200, {});
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("200"), std::string::npos);
  server_.reset();
  reply->Write("late");
  reply->End();
  EXPECT_TRUE(client.ReadAll().find("late") == std::string::npos && client.closed());
}

TEST_F(HttpServerTest, DrainFinishesBusyAndCloses) {
  Listen();
  Client busy(server_->port());
  busy.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto reply = AwaitReply();
  server_->Drain();
  std::this_thread::sleep_for(milliseconds(50));
  reply->Send(200, {}, "done");
  const std::string answer = busy.ReadUntil("done");
  EXPECT_NE(answer.find("done"), std::string::npos);
  EXPECT_NE(answer.find("connection: close\r\n"), std::string::npos) << answer;
  EXPECT_EQ(busy.ReadAll(), "");
  EXPECT_TRUE(busy.closed());
}

TEST_F(HttpServerTest, DrainClosesTheIdleAtOnce) {
  HttpOptions options;
  options.num_threads = 2;
  Listen(options);
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<Client>(server_->port()));
    if (i % 2 == 0) continue;  // one that never asked
    idle.back()->Send(Post("/echo", "x"));
    EXPECT_NE(idle.back()->ReadUntil("<x>").find("200"), std::string::npos);
  }
  while (server_->counts().connections_open < 20) std::this_thread::yield();
  Client busy(server_->port());
  busy.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto reply = AwaitReply();
  server_->Drain();
  for (auto& client : idle) {
    EXPECT_EQ(client->ReadAll(), "");
    EXPECT_TRUE(client->closed());
  }
  reply->Send(200, {}, "done");
  EXPECT_NE(busy.ReadUntil("done").find("done"), std::string::npos);
}

TEST_F(HttpServerTest, ListensOnAPrivateSocket) {
  HttpOptions options;
  options.unix_path = ::testing::TempDir() + "hearth-http-test.sock";
  Listen(options);
  EXPECT_EQ(::access(options.unix_path.c_str(), F_OK), 0);
  server_.reset();
  EXPECT_NE(::access(options.unix_path.c_str(), F_OK), 0);
}

TEST_F(HttpServerTest, ServesASocketThatListenedBefore) {
  Result<int> listener = HttpServer::OpenListener({});
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  HttpOptions options;
  options.listener = *listener;
  EXPECT_TRUE(HttpServer::TryListening(options).ok()) << "and takes nothing over";
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(*listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  Client early(ntohs(address.sin_port));  // it waits in the backlog
  early.Send(Post("/echo", "x"));
  Listen(options);
  EXPECT_EQ(server_->port(), ntohs(address.sin_port));
  EXPECT_NE(early.ReadUntil("<x>").find("200"), std::string::npos);
}

TEST_F(HttpServerTest, LeavesTheFileOfASocketToWhoeverOpenedIt) {
  HttpOptions options;
  options.unix_path = ::testing::TempDir() + "hearth-http-test-2.sock";
  Result<int> listener = HttpServer::OpenListener(options);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  options.listener = ::dup(*listener);
  Listen(options);
  server_.reset();
  EXPECT_EQ(::access(options.unix_path.c_str(), F_OK), 0);
  ::close(*listener);
  ::unlink(options.unix_path.c_str());
}

TEST_F(HttpServerTest, AHandlerWithoutMemoryEndsItsRequestAlone) {
  Listen();
  Client client(server_->port());
  client.Send("GET /no-memory HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("503"), std::string::npos);
  client.Send(Post("/echo", "x"));
  EXPECT_NE(client.ReadUntil("<x>").find("200"), std::string::npos);
}

TEST(HttpServer, SaysWhyItCannotListen) {
  HttpOptions options;
  options.host = "not an address";
  EXPECT_EQ(HttpServer::Listen(options, Router()).status().code(), Code::kInvalid);
  auto first = HttpServer::Listen({}, Router());
  ASSERT_TRUE(first.ok());
  options = {};
  options.port = static_cast<uint16_t>((*first)->port());
  EXPECT_NE(HttpServer::Listen(options, Router()).status().message().find("in use"),
            std::string::npos);
}

}  // namespace
}  // namespace hearth
