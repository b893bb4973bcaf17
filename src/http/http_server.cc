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
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread_name.h"
#include "http/connection.h"
#include "http/local_socket.h"
#include "http/tls.h"

namespace hearth {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

// One thread with its own loop. A connection lives on one lane, so nothing in it locks.
struct Lane {
  LaneShared shared;  // outlives what `io` runs
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

constexpr int kTakenAtOnce = 64;

// What a lane runs may find no memory; then that piece of work is lost and the lane goes on, after
// `repair` has seen to what must not be lost.
void RunLane(asio::io_context& io, const std::function<void()>& repair) {
  NameThread("http");
  bool is_hurt = false;
  while (true) {
    try {
      if (is_hurt) repair();
      is_hurt = false;
      io.run();
      return;
    } catch (const std::bad_alloc&) {
      is_hurt = true;
    }
  }
}

// Brings a coroutine's failure to its lane.
void PassOn(const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
}

// True while a coroutine lives, however it ends.
struct Alive {
  bool& is_alive;
  explicit Alive(bool& flag) : is_alive(flag) { is_alive = true; }
  ~Alive() { is_alive = false; }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
};

// What to do about a port that cannot be had.
const char* HintAt(const error_code& ec) {
  if (ec == asio::error::address_in_use) {
    return "; stop the program that has this port, or choose another port";
  }
  if (ec == asio::error::access_denied) {
    return "; ports below 1024 need privileges: choose another port";
  }
  if (ec == boost::system::errc::address_not_available) {
    return "; this machine does not have this address";
  }
  return "";
}

}  // namespace

struct HttpServer::Impl {
  HttpShared shared;
  PeerCounts peers;  // outlives the connections of the lanes
  std::vector<std::unique_ptr<Lane>> lanes;
  std::optional<tcp::acceptor> tcp_acceptor;
  std::optional<stream_protocol::acceptor> local_acceptor;
  std::unique_ptr<TlsContexts> tls;
  bool accepts_tcp = false, accepts_local = false;  // of the first lane's thread
  size_t next_lane = 0;
  int port = 0;
  bool owns_local_path = false;

  Status Open();
  Status OpenTcp();
  Status OpenLocal();
  Status AdoptListener();
  Status BindLocal();
  void LeaveLocalPath();
  struct Presence;
  std::shared_ptr<Presence> Present(const std::string& peer);
  void Accept();
  void Start();
  void Stop();
  asio::awaitable<void> AcceptTcp();
  asio::awaitable<void> AcceptLocal();
  void Spawn(Lane& lane, tcp::socket& socket);
  bool TrySpawn(Lane& lane, tcp::socket& socket);  // false: no memory; it may still be open
  // False when the machine or this peer has enough; the caller closes.
  bool Enter(const std::string& peer);
  void Leave(const std::string& peer);
};

Status HttpServer::Impl::OpenTcp() {
  error_code ec;
  const auto address = asio::ip::make_address(shared.options.host, ec);
  if (ec) {
    return Error(Code::kInvalid, "%s is not a valid address; expected one like 127.0.0.1 or ::1",
                 Quoted(shared.options.host).c_str());
  }
  const tcp::endpoint endpoint(address, shared.options.port);
  tcp_acceptor.emplace(lanes[0]->io);
  tcp_acceptor->open(endpoint.protocol(), ec);
  if (!ec) tcp_acceptor->set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) tcp_acceptor->bind(endpoint, ec);
  if (!ec) tcp_acceptor->listen(4096, ec);
  if (ec) {
    return Error(Code::kIo, "listening on %s port %d: %s%s", shared.options.host.c_str(),
                 int{shared.options.port}, ec.message().c_str(), HintAt(ec));
  }
  port = tcp_acceptor->local_endpoint(ec).port();
  return {};
}

Status HttpServer::Impl::OpenLocal() {
  HEARTH_TRY(BindLocalSocket(shared.options.unix_path, [this] { return BindLocal(); }));
  owns_local_path = true;
  return {};
}

Status HttpServer::Impl::BindLocal() {
  const std::string& path = shared.options.unix_path;
  error_code ec;
  local_acceptor.emplace(lanes[0]->io);
  local_acceptor->open(stream_protocol(), ec);
  // Nobody else may connect between bind and chmod.
  const mode_t before = ::umask(0177);
  if (!ec) local_acceptor->bind(stream_protocol::endpoint(path), ec);
  ::umask(before);
  if (!ec) local_acceptor->listen(1024, ec);
  if (ec)
    return Error(Code::kIo, "listening on %s: %s%s", Quoted(path).c_str(), ec.message().c_str(),
                 ec == asio::error::address_in_use ? "; a file is there: choose another path" : "");
  return {};
}

// A socket that somebody else opened: who that is removes its file.
Status HttpServer::Impl::AdoptListener() {
  error_code ec;
  const int listener = shared.options.listener;
  if (!shared.options.unix_path.empty()) {
    local_acceptor.emplace(lanes[0]->io);
    local_acceptor->assign(stream_protocol(), listener, ec);
  } else {
    tcp_acceptor.emplace(lanes[0]->io);
    const bool is_v6 = shared.options.host.find(':') != std::string::npos;
    tcp_acceptor->assign(is_v6 ? tcp::v6() : tcp::v4(), listener, ec);
    if (!ec) port = tcp_acceptor->local_endpoint(ec).port();
  }
  if (ec) {
    return Error(Code::kIo, "the listening socket %d: %s", listener, ec.message().c_str());
  }
  return {};
}

Status HttpServer::Impl::Open() {
  for (int i = 0; i < std::max(1, shared.options.num_threads); ++i) {
    lanes.push_back(std::make_unique<Lane>());
  }
  if (!shared.options.unix_path.empty()) {
    if (shared.options.unix_path.size() > 100) {
      return Error(Code::kInvalid,
                   "the socket's path has %zu bytes; the limit is 100: choose a shorter one",
                   shared.options.unix_path.size());
    }
    return shared.options.listener >= 0 ? AdoptListener() : OpenLocal();
  }
  if (shared.options.tls) {
    tls = std::make_unique<TlsContexts>(*shared.options.tls);
    HEARTH_TRY(tls->Load());
  }
  return shared.options.listener >= 0 ? AdoptListener() : OpenTcp();
}

// Before the socket is closed: afterwards the path may already be the next server's.
void HttpServer::Impl::LeaveLocalPath() {
  if (std::exchange(owns_local_path, false)) ::unlink(shared.options.unix_path.c_str());
}

bool HttpServer::Impl::Enter(const std::string& peer) {
  shared.connections_total.fetch_add(1);
  if (shared.connections_open.fetch_add(1) < shared.options.max_connections) {
    try {
      // Everybody on the local socket is one peer, the machine's owner.
      if (peer == "unix" || peers.Enter(peer, shared.options.max_connections_per_peer)) return true;
    } catch (const std::bad_alloc&) {
      shared.connections_open.fetch_sub(1);
      throw;
    }
  }
  shared.connections_open.fetch_sub(1);
  shared.connections_refused.fetch_add(1);
  return false;
}

void HttpServer::Impl::Leave(const std::string& peer) {
  if (peer != "unix") peers.Leave(peer);
  shared.connections_open.fetch_sub(1);
}

// One that was let in, until it leaves.
struct HttpServer::Impl::Presence {
  Presence(Impl& server, std::string who) : impl(server), peer(std::move(who)) {}
  ~Presence() { impl.Leave(peer); }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  Impl& impl;
  const std::string peer;
};

// After Enter.
std::shared_ptr<HttpServer::Impl::Presence> HttpServer::Impl::Present(const std::string& peer) {
  try {
    return std::make_shared<Presence>(*this, peer);
  } catch (const std::bad_alloc&) {
    Leave(peer);
    throw;
  }
}

void HttpServer::Impl::Spawn(Lane& lane, tcp::socket& socket) {
  error_code ec;
  const auto remote = socket.remote_endpoint(ec);
  const std::string peer = ec ? "unknown" : remote.address().to_string();
  if (!Enter(peer)) return;                    // the socket closes itself
  socket.set_option(tcp::no_delay(true), ec);  // a token must not wait for the next one
  // Left however the connection ends: also when its coroutine is lost for want of memory.
  auto done = [here = Present(peer)](std::exception_ptr) {};
  TcpStream stream(std::move(socket));
  if (tls) {
    asio::co_spawn(
        lane.io, Serve(TlsStream(std::move(stream), *tls->get()), shared, lane.shared, peer), done);
  } else {
    asio::co_spawn(lane.io, Serve(std::move(stream), shared, lane.shared, peer), done);
  }
}

bool HttpServer::Impl::TrySpawn(Lane& lane, tcp::socket& socket) {
  try {
    Spawn(lane, socket);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

asio::awaitable<void> HttpServer::Impl::AcceptTcp() {
  const Alive alive(accepts_tcp);
  asio::steady_timer pause(lanes[0]->io);
  error_code ignored;
  tcp_acceptor->non_blocking(true, ignored);
  for (int taken = 0;; ++taken) {
    Lane& lane = *lanes[next_lane++ % lanes.size()];
    error_code ec;
    tcp::socket socket(lane.io);
    // Whoever waits in the kernel's line stands behind all others of it, whoever they are; here
    // they take turns. So several are taken at once, with the connections of this lane in between.
    if (taken % kTakenAtOnce != 0) tcp_acceptor->accept(socket, ec);
    if (taken % kTakenAtOnce == 0 || ec == asio::error::would_block) {
      taken = 0;
      co_await tcp_acceptor->async_accept(socket, asio::redirect_error(asio::use_awaitable, ec));
    }
    if (ec == asio::error::operation_aborted || !tcp_acceptor->is_open()) co_return;
    if (!ec && TrySpawn(lane, socket)) continue;
    // Out of descriptors or memory: those who leave make room; trying again at once would burn a
    // core.
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    // Whoever was let in and found no memory is tried once more, rather than cut unheard.
    if (socket.is_open()) TrySpawn(lane, socket);
  }
}

asio::awaitable<void> HttpServer::Impl::AcceptLocal() {
  const Alive alive(accepts_local);
  asio::steady_timer pause(lanes[0]->io);
  while (true) {
    Lane& lane = *lanes[next_lane++ % lanes.size()];
    error_code ec;
    stream_protocol::socket socket = co_await local_acceptor->async_accept(
        lane.io, asio::redirect_error(asio::use_awaitable, ec));
    if (ec == asio::error::operation_aborted || !local_acceptor->is_open()) co_return;
    if (!ec) {
      if (!Enter("unix")) continue;
      auto done = [here = Present("unix")](std::exception_ptr) {};
      asio::co_spawn(lane.io, Serve(LocalStream(std::move(socket)), shared, lane.shared, "unix"),
                     std::move(done));
      continue;
    }
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  }
}

// A server that has stopped accepting would be deaf for good.
void HttpServer::Impl::Accept() {
  asio::io_context& first = lanes[0]->io;
  if (tcp_acceptor && tcp_acceptor->is_open() && !accepts_tcp) {
    asio::co_spawn(first, AcceptTcp(), PassOn);
  }
  if (local_acceptor && local_acceptor->is_open() && !accepts_local) {
    asio::co_spawn(first, AcceptLocal(), PassOn);
  }
}

void HttpServer::Impl::Start() {
  Accept();
  for (auto& lane : lanes) {
    const bool is_first = lane == lanes[0];
    lane->thread = std::thread([this, &io = lane->io, is_first] {
      RunLane(io, [this, is_first] {
        if (is_first) Accept();
      });
    });
  }
}

void HttpServer::Impl::Stop() {
  shared.is_stopping = true;
  for (auto& lane : lanes) lane->io.stop();
  for (auto& lane : lanes) {
    if (lane->thread.joinable()) lane->thread.join();
  }
  LeaveLocalPath();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(HttpOptions options, Router router) {
  auto impl = std::make_unique<Impl>();
  impl->shared.options = std::move(options);
  impl->shared.router = std::move(router);
  impl->shared.last_words = LastWords(impl->shared.router, impl->shared.options.describe_refusal);
  HEARTH_TRY(impl->Open());
  impl->Start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

Status HttpServer::TryListening(HttpOptions options) {
  if (options.listener >= 0) {
    // It listens; looking at it here would take it over.
    if (options.tls) HEARTH_TRY(TlsContexts(*options.tls).Load());
    return {};
  }
  auto impl = std::make_unique<Impl>();
  impl->shared.options = std::move(options);
  HEARTH_TRY(impl->Open());
  impl->Stop();
  return {};
}

Result<int> HttpServer::OpenListener(HttpOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->shared.options = std::move(options);
  impl->shared.options.tls.reset();
  HEARTH_TRY(impl->Open());
  error_code ec;
  return impl->tcp_acceptor ? impl->tcp_acceptor->release(ec) : impl->local_acceptor->release(ec);
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { impl_->Stop(); }

int HttpServer::port() const { return impl_->port; }

Status HttpServer::ReloadTls() { return impl_->tls == nullptr ? Status() : impl_->tls->Load(); }

void HttpServer::Drain() {
  impl_->shared.draining->store(true);
  impl_->LeaveLocalPath();
  asio::post(impl_->lanes[0]->io, [impl = impl_.get()] {
    error_code ec;
    if (impl->tcp_acceptor) impl->tcp_acceptor->close(ec);
    if (impl->local_acceptor) impl->local_acceptor->close(ec);
  });
  for (auto& lane : impl_->lanes) {
    asio::post(lane->io, [&idle = lane->shared.idle] { idle.CloseAll(); });
  }
}

HttpCounts HttpServer::counts() const {
  const HttpShared& s = impl_->shared;
  return {s.connections_open, s.connections_total, s.connections_refused, s.requests_total,
          s.refusals_total};
}

}  // namespace hearth
