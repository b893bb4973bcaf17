// SPDX-License-Identifier: Apache-2.0
#include "server/event_loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace hearth {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) { HEARTH_CHECK(epoll_ >= 0); }

EventLoop::~EventLoop() { ::close(epoll_); }

double EventLoop::Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void EventLoop::Watch(int fd, uint32_t epoll_events, Watcher* watcher) {
  epoll_event event{.events = epoll_events, .data = {.ptr = watcher}};
  HEARTH_CHECK(::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0);
}

void EventLoop::Change(int fd, uint32_t epoll_events, Watcher* watcher) {
  epoll_event event{.events = epoll_events, .data = {.ptr = watcher}};
  HEARTH_CHECK(::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) == 0);
}

void EventLoop::At(double when_s, std::function<void()> work) {
  timers_.push({when_s, num_timers_++, std::move(work)});
}

void EventLoop::RunTimers() {
  while (!timers_.empty() && timers_.top().when_s <= Now()) {
    const std::function<void()> work = timers_.top().work;
    timers_.pop();
    work();
  }
}

void EventLoop::Run(const std::function<bool()>& is_over) {
  std::array<epoll_event, 256> events{};
  while (!is_over()) {
    double wait_s = 0.1;
    if (!timers_.empty()) wait_s = std::clamp(timers_.top().when_s - Now(), 0.0, wait_s);
    const timespec wait{0, static_cast<long>(wait_s * 1e9)};
    const int count =
        ::epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &wait, nullptr);
    HEARTH_CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      static_cast<Watcher*>(event.data.ptr)->OnSocket(event.events);
    }
    RunTimers();
  }
}

int ConnectFrom(int port, int number, int num_sources, int receive_buffer_bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // The port is chosen at connect: a port then counts against one pair of addresses only.
  ::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
  if (receive_buffer_bytes > 0) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  const auto host = static_cast<uint32_t>(number % std::max(1, num_sources));
  from.sin_addr.s_addr = htonl((127U << 24) + (1U << 16) + ((host / 250) << 8) + 1 + host % 250);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  const bool begun = ::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
                     (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ||
                      errno == EINPROGRESS);
  if (begun) return fd;
  ::close(fd);
  return -1;
}

}  // namespace hearth
