// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on sockets: connections, limits, deadlines and nothing about models. Boost.Asio and
// Beast stay inside http_server.cc, connection.h, bell.h and linger.h.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/head_check.h"
#include "http/message.h"
#include "http/request_hold.h"
#include "http/router.h"
namespace hearth {

struct HttpTimes {
  std::chrono::milliseconds head{10'000};       // from the first byte of a head to its end
  std::chrono::milliseconds idle{60'000};       // between requests
  std::chrono::milliseconds body_grace{5'000};  // then a body must bring body_bytes_per_s
  // What came fast buys at most so much patience with what comes slowly.
  std::chrono::milliseconds body_credit{15'000};
  // Without the reader taking a byte. One that takes bytes must take reply_bytes_per_s; being fast
  // buys no more than this either.
  std::chrono::milliseconds write_stall{30'000};
  int body_bytes_per_s = 1024, reply_bytes_per_s = 1024;
  // Lingering close (linger.h). In 30 s a link of 20 Mbit/s brings 64 MiB (27 s); a connection that
  // does nothing may stay for twice as long, so clients that trickle gain nothing by it. A client
  // that has sent nothing for as long as a body's grace is not sending.
  std::chrono::milliseconds linger{30'000};
  std::chrono::milliseconds linger_silence{5'000};
};

struct TlsFiles {
  std::string certificate_path, key_path;  // PEM; the certificate with its chain
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address, not a name
  uint16_t port = 0;               // 0: any free one
  std::string unix_path;           // instead of host and port; mode 0600
  // A socket that listens there already, instead of opening one; taken over. -1: none.
  int listener = -1;
  int num_threads = 1;
  int max_connections = 16'384, max_connections_per_peer = 256;
  // Beyond this many bytes that a reader does not take, its connection is cut: the last defence,
  // far above where the engine pauses a slow reader's sequence.
  size_t max_unsent_bytes = size_t{8} << 20;
  // How much is discarded of what a client still sends after an answer that did not wait for it.
  // Another API takes bodies of 32 MB; twice that, so that clients written for it get their 413.
  size_t max_linger_bytes = size_t{64} << 20;
  HttpLimits limits;
  HttpTimes times;
  std::optional<TlsFiles> tls;
  // Asked for every request that matches a route, before its body is read. It may fill key_id.
  std::function<std::optional<HttpRefusal>(HttpRequest&, Auth)> authorize;
  // What every answer to a request says beside its own headers; also a refusal of it.
  std::function<HttpReply::Headers(const HttpRequest&)> answer_headers;
  // Counts what requests hold; not asked for public routes. Outlives the server and every reply.
  RequestBudget* budget = nullptr;
  // The body of a refusal, as JSON.
  std::function<std::string(const HttpRefusal&)> describe_refusal;
};

struct HttpCounts {
  int64_t connections_open = 0, connections_total = 0, connections_refused = 0;
  int64_t requests_total = 0, refusals_total = 0;
};

// Thread: any. Handlers run on the server's threads and must not block.
class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Listen(HttpOptions options, Router router);
  // Says what would keep Listen from succeeding, without taking a connection.
  static Status TryListening(HttpOptions options);
  // The socket alone, for HttpOptions::listener of whichever process will serve it: who connects
  // meanwhile waits. The caller closes it, and removes the file of a Unix socket at the end.
  static Result<int> OpenListener(HttpOptions options);
  ~HttpServer();  // cuts what is still open
  int port() const;
  // Reads certificate and key again, for connections that begin from now on. When either is wrong
  // the previous ones stay in use.
  Status ReloadTls();
  // Takes no more connections; open ones end after the request they are at, those without one at
  // once.
  void Drain();
  HttpCounts counts() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
