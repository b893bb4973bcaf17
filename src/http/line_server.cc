// SPDX-License-Identifier: Apache-2.0
#include "http/line_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/thread_name.h"

namespace hearth {
namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

Status NotAnAddress(const std::string& text) {
  return Error(Code::kInvalid, "expected an address and a port such as 127.0.0.1:9100, found %s",
               Quoted(text).c_str());
}

Result<Address> ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return NotAnAddress(text);
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end) return NotAnAddress(text);
  std::string host = text.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  Address out;
  if (host.front() == '[' && host.back() == ']') {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six.sin6_addr) != 1) {
      return NotAnAddress(text);
    }
    out.size = sizeof six;
    std::memcpy(&out.bytes, &six, sizeof six);
    return out;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) return NotAnAddress(text);
  out.size = sizeof four;
  std::memcpy(&out.bytes, &four, sizeof four);
  return out;
}

int PortOf(int listener) {
  Address bound;
  bound.size = sizeof bound.bytes;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&bound.bytes), &bound.size) != 0) {
    return 0;
  }
  uint16_t port = 0;  // both families have it behind their first two bytes
  std::memcpy(&port, reinterpret_cast<const char*>(&bound.bytes) + 2, sizeof port);
  return ntohs(port);
}

void Tell(int socket, const std::string& line) {
  // Shorter than any socket's buffer: it is taken whole, or the other side has gone.
  (void)::send(socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  // What was sent to us and not read would turn the close into a reset, which may overtake the
  // line.
  char unread[256];
  (void)::recv(socket, unread, sizeof unread, MSG_DONTWAIT);
  ::close(socket);
}

}  // namespace

struct LineServer::Running {
  Running(int l, std::function<std::string()> s)
      : listener(l),
        stop(::eventfd(0, EFD_CLOEXEC)),
        line(std::move(s)),
        thread([this] { Run(); }) {}
  ~Running() {
    ::eventfd_write(stop, 1);
    thread.join();
    ::close(stop);
  }
  void Run() {
    NameThread("agent");
    pollfd watched[2] = {{listener, POLLIN, 0}, {stop, POLLIN, 0}};
    while (true) {
      if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
      if ((watched[1].revents & POLLIN) != 0) return;
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) {
        TellNow(socket);
      } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        // Out of descriptors: trying again at once would burn a core.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
  }
  void TellNow(int socket) const {
    std::string said;
    try {
      said = line();
    } catch (const std::bad_alloc&) {  // nothing is said; the balancer keeps what it knows
    }
    Tell(socket, said);
  }
  const int listener, stop;
  const std::function<std::string()> line;
  std::thread thread;
};

Result<std::unique_ptr<LineServer>> LineServer::Listen(const std::string& address) {
  HEARTH_ASSIGN(const Address at, ParseAddress(address));
  const int listener = ::socket(at.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return Error(Code::kIo, "%s: %s", address.c_str(), std::strerror(errno));
  std::unique_ptr<LineServer> server(new LineServer(listener));
  const int on = 1;  // a worker that was started again takes the port of the one before
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&at.bytes), at.size) != 0 ||
      ::listen(listener, 64) != 0) {
    return Error(Code::kIo, "cannot listen on %s: %s", address.c_str(), std::strerror(errno));
  }
  server->port_ = PortOf(listener);
  return server;
}

LineServer::LineServer(int listener) : listener_(listener) {}

LineServer::~LineServer() {
  running_.reset();
  ::close(listener_);
}

void LineServer::Start(std::function<std::string()> line) {
  running_ = std::make_unique<Running>(listener_, std::move(line));
}

}  // namespace hearth
