// SPDX-License-Identifier: Apache-2.0
// How other threads wake a connection that waits. Internal to the room.
#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <new>
namespace hearth {

// Wakes a waiting coroutine from any thread. The flag covers a wake that comes before the wait.
class Bell : public std::enable_shared_from_this<Bell> {
 public:
  explicit Bell(const boost::asio::any_io_executor& executor)
      : executor_(executor), timer_(executor) {}
  // Never fails: where there is no memory for the message, the wait's next look finds the flag.
  void Ring() {
    if (rung_.exchange(true)) return;
    try {
      boost::asio::post(executor_, [self = shared_from_this()] { self->timer_.cancel(); });
    } catch (const std::bad_alloc&) {
    }
  }
  boost::asio::awaitable<void> Wait() {
    while (!rung_.load()) {
      timer_.expires_after(kLookEvery);
      boost::system::error_code ignored;
      co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    }
    rung_.store(false);
  }

 private:
  static constexpr auto kLookEvery = std::chrono::seconds(1);
  boost::asio::any_io_executor executor_;
  boost::asio::steady_timer timer_;
  std::atomic<bool> rung_{false};
};

}  // namespace hearth
