// SPDX-License-Identifier: Apache-2.0
// One thread, many sockets: what the load driver's clients live on.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>
namespace hearth {

// Hears of its socket. Thread: the loop's.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void OnSocket(uint32_t epoll_events) = 0;
};

// Thread: one.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  static double Now();  // seconds, steady
  void Watch(int fd, uint32_t epoll_events, Watcher* watcher);
  void Change(int fd, uint32_t epoll_events, Watcher* watcher);
  // Closing a socket ends its watch; events of this round may still come for a socket closed
  // meanwhile, so a watcher lives as long as the loop.
  void At(double when_s, std::function<void()> work);
  // Until `is_over` says so; it is asked after every round, at least ten times a second.
  void Run(const std::function<bool()>& is_over);

 private:
  struct Timer {
    double when_s;
    uint64_t number;
    std::function<void()> work;
    bool operator>(const Timer& other) const {
      return when_s != other.when_s ? when_s > other.when_s : number > other.number;
    }
  };
  void RunTimers();

  int epoll_ = -1;
  uint64_t num_timers_ = 0;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
};

// A socket on its way to 127.0.0.1:`port`, not blocking, from one of `num_sources` loopback
// addresses: a server that counts connections per peer sees that many peers. -1: no more sockets.
int ConnectFrom(int port, int number, int num_sources, int receive_buffer_bytes = 0);

}  // namespace hearth
