// SPDX-License-Identifier: Apache-2.0
#include "http/http_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "http/connection.h"

namespace hearth {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

// One thread with its own loop. A connection lives on one lane, so nothing in it locks.
struct Lane {
  IdleConnections idle;  // outlives what `io` runs
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  std::thread thread;
};

// How many connections each address has open. Thread: any.
class PeerCounts {
 public:
  bool Enter(const std::string& peer, int limit) {
    const MutexLock lock(mu_);
    int& count = counts_[peer];
    if (count >= limit) return false;
    ++count;
    return true;
  }
  void Leave(const std::string& peer) {
    const MutexLock lock(mu_);
    const auto at = counts_.find(peer);
    if (--at->second == 0) counts_.erase(at);
  }

 private:
  Mutex mu_;
  std::unordered_map<std::string, int> counts_ HEARTH_GUARDED_BY(mu_);
};

Result<std::unique_ptr<asio::ssl::context>> MakeTls(const TlsFiles& files) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code ec;
  context->use_certificate_chain_file(files.certificate_path, ec);
  if (ec) {
    return Error(Code::kIo, "TLS certificate %s: %s", Quoted(files.certificate_path).c_str(),
                 ec.message().c_str());
  }
  context->use_private_key_file(files.key_path, asio::ssl::context::pem, ec);
  if (ec) {
    return Error(Code::kIo, "TLS key %s: %s", Quoted(files.key_path).c_str(), ec.message().c_str());
  }
  return context;
}

}  // namespace

struct HttpServer::Impl {
  HttpShared shared;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::optional<tcp::acceptor> tcp_acceptor;
  std::optional<stream_protocol::acceptor> local_acceptor;
  std::unique_ptr<asio::ssl::context> tls;
  PeerCounts peers;
  size_t next_lane = 0;
  int port = 0;

  Status Open();
  Status OpenTcp();
  Status OpenLocal();
  void Start();
  void Stop();
  asio::awaitable<void> AcceptTcp();
  asio::awaitable<void> AcceptLocal();
  void Spawn(Lane& lane, tcp::socket socket);
  // False when the machine or this peer has enough; the caller closes.
  bool Enter(const std::string& peer);
  void Leave(const std::string& peer);
};

Status HttpServer::Impl::OpenTcp() {
  error_code ec;
  const auto address = asio::ip::make_address(shared.options.host, ec);
  if (ec)
    return Error(Code::kInvalid, "%s is not a valid address", Quoted(shared.options.host).c_str());
  const tcp::endpoint endpoint(address, shared.options.port);
  tcp_acceptor.emplace(lanes[0]->io);
  tcp_acceptor->open(endpoint.protocol(), ec);
  if (!ec) tcp_acceptor->set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) tcp_acceptor->bind(endpoint, ec);
  if (!ec) tcp_acceptor->listen(4096, ec);
  if (ec) {
    return Error(Code::kIo, "listening on %s port %d: %s", shared.options.host.c_str(),
                 int{shared.options.port}, ec.message().c_str());
  }
  port = tcp_acceptor->local_endpoint(ec).port();
  return {};
}

Status HttpServer::Impl::OpenLocal() {
  const std::string& path = shared.options.unix_path;
  struct stat st{};
  // A socket left behind by a process that died is removed; anything else is somebody's file.
  if (::lstat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode)) ::unlink(path.c_str());
  error_code ec;
  local_acceptor.emplace(lanes[0]->io);
  local_acceptor->open(stream_protocol(), ec);
  // Nobody else may connect between bind and chmod.
  const mode_t before = ::umask(0177);
  if (!ec) local_acceptor->bind(stream_protocol::endpoint(path), ec);
  ::umask(before);
  if (!ec) local_acceptor->listen(1024, ec);
  if (ec)
    return Error(Code::kIo, "listening on %s: %s", Quoted(path).c_str(), ec.message().c_str());
  return {};
}

Status HttpServer::Impl::Open() {
  for (int i = 0; i < std::max(1, shared.options.num_threads); ++i) {
    lanes.push_back(std::make_unique<Lane>());
  }
  if (!shared.options.unix_path.empty()) {
    if (shared.options.unix_path.size() > 100) {
      return Error(Code::kInvalid, "the socket's path has %zu bytes, at most 100 fit",
                   shared.options.unix_path.size());
    }
    return OpenLocal();
  }
  if (shared.options.tls) {
    HEARTH_ASSIGN(tls, MakeTls(*shared.options.tls));
  }
  return OpenTcp();
}

bool HttpServer::Impl::Enter(const std::string& peer) {
  shared.connections_total.fetch_add(1);
  if (shared.connections_open.fetch_add(1) < shared.options.max_connections) {
    // Everybody on the local socket is one peer, the machine's owner.
    if (peer == "unix" || peers.Enter(peer, shared.options.max_connections_per_peer)) return true;
  }
  shared.connections_open.fetch_sub(1);
  shared.connections_refused.fetch_add(1);
  return false;
}

void HttpServer::Impl::Leave(const std::string& peer) {
  if (peer != "unix") peers.Leave(peer);
  shared.connections_open.fetch_sub(1);
}

void HttpServer::Impl::Spawn(Lane& lane, tcp::socket socket) {
  error_code ec;
  const auto remote = socket.remote_endpoint(ec);
  const std::string peer = ec ? "unknown" : remote.address().to_string();
  if (!Enter(peer)) return;                    // the socket closes itself
  socket.set_option(tcp::no_delay(true), ec);  // a token must not wait for the next one
  auto done = [this, peer](std::exception_ptr) { Leave(peer); };
  TcpStream stream(std::move(socket));
  if (tls) {
    asio::co_spawn(lane.io, Serve(TlsStream(std::move(stream), *tls), shared, lane.idle, peer),
                   done);
  } else {
    asio::co_spawn(lane.io, Serve(std::move(stream), shared, lane.idle, peer), done);
  }
}

asio::awaitable<void> HttpServer::Impl::AcceptTcp() {
  asio::steady_timer pause(lanes[0]->io);
  while (true) {
    Lane& lane = *lanes[next_lane++ % lanes.size()];
    error_code ec;
    tcp::socket socket =
        co_await tcp_acceptor->async_accept(lane.io, asio::redirect_error(asio::use_awaitable, ec));
    if (ec == asio::error::operation_aborted || !tcp_acceptor->is_open()) co_return;
    if (!ec) {
      Spawn(lane, std::move(socket));
      continue;
    }
    // Out of descriptors: those who leave make room; trying again at once would burn a core.
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  }
}

asio::awaitable<void> HttpServer::Impl::AcceptLocal() {
  asio::steady_timer pause(lanes[0]->io);
  while (true) {
    Lane& lane = *lanes[next_lane++ % lanes.size()];
    error_code ec;
    stream_protocol::socket socket = co_await local_acceptor->async_accept(
        lane.io, asio::redirect_error(asio::use_awaitable, ec));
    if (ec == asio::error::operation_aborted || !local_acceptor->is_open()) co_return;
    if (!ec) {
      if (!Enter("unix")) continue;
      asio::co_spawn(lane.io, Serve(LocalStream(std::move(socket)), shared, lane.idle, "unix"),
                     [this](std::exception_ptr) { Leave("unix"); });
      continue;
    }
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  }
}

void HttpServer::Impl::Start() {
  asio::io_context& first = lanes[0]->io;
  if (tcp_acceptor) asio::co_spawn(first, AcceptTcp(), asio::detached);
  if (local_acceptor) asio::co_spawn(first, AcceptLocal(), asio::detached);
  for (auto& lane : lanes) {
    lane->thread = std::thread([&io = lane->io] { io.run(); });
  }
}

void HttpServer::Impl::Stop() {
  for (auto& lane : lanes) lane->io.stop();
  for (auto& lane : lanes) {
    if (lane->thread.joinable()) lane->thread.join();
  }
  if (local_acceptor) ::unlink(shared.options.unix_path.c_str());
}

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(HttpOptions options, Router router) {
  auto impl = std::make_unique<Impl>();
  impl->shared.options = std::move(options);
  impl->shared.router = std::move(router);
  HEARTH_TRY(impl->Open());
  impl->Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { impl_->Stop(); }

int HttpServer::port() const { return impl_->port; }

void HttpServer::Drain() {
  impl_->shared.draining->store(true);
  asio::post(impl_->lanes[0]->io, [impl = impl_.get()] {
    error_code ec;
    if (impl->tcp_acceptor) impl->tcp_acceptor->close(ec);
    if (impl->local_acceptor) impl->local_acceptor->close(ec);
  });
  for (auto& lane : impl_->lanes) {
    asio::post(lane->io, [&idle = lane->idle] { idle.CloseAll(); });
  }
}

HttpCounts HttpServer::counts() const {
  const HttpShared& s = impl_->shared;
  return {s.connections_open, s.connections_total, s.connections_refused, s.requests_total,
          s.refusals_total};
}

}  // namespace hearth
