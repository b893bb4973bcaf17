// SPDX-License-Identifier: Apache-2.0
// One connection as a coroutine: read a head, check it, ask who it is, read the body, hand it to
// its handler, write what comes back, again. Internal to the room: with linger.h
// and bell.h the only header with Boost types.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <memory>
#include <string>
#include <vector>

#include "http/http_server.h"
#include "http/lane_turns.h"
#include "http/last_words.h"
namespace hearth {

// What every connection of a server shares. Thread: counters any; the rest is fixed once listening.
struct HttpShared {
  HttpOptions options;
  Router router;
  LastWords last_words;
  std::atomic<bool> is_stopping{false};  // what is open is cut, and not for want of memory
  // Shared with answers, which may outlive the server.
  std::shared_ptr<std::atomic<bool>> draining = std::make_shared<std::atomic<bool>>(false);
  std::atomic<int64_t> connections_open{0}, connections_total{0}, connections_refused{0};
  std::atomic<int64_t> requests_total{0}, refusals_total{0};
};

// The connections of one of the server's threads that are between two requests. Thread: that one.
class IdleConnections {
 public:
  class Member {
   public:
    virtual void CloseIdle() = 0;

   protected:
    ~Member() = default;

   private:
    friend class IdleConnections;
    size_t place_ = 0;
  };
  void Enter(Member& member);
  void Leave(Member& member);
  void CloseAll();

 private:
  std::vector<Member*> members_;
};

// A connection is idle for as long as this lives: it ends with the coroutine's frame, also when a
// server that goes destroys it where it waits.
struct Idling {
  IdleConnections& idle;
  IdleConnections::Member& member;
  Idling(IdleConnections& i, IdleConnections::Member& m) : idle(i), member(m) {
    idle.Enter(member);
  }
  ~Idling() { idle.Leave(member); }
  Idling(const Idling&) = delete;
  Idling& operator=(const Idling&) = delete;
};

// What the connections of one thread share. Thread: that one; it outlives what that one runs.
struct LaneShared {
  IdleConnections idle;
  LaneTurns turns;
};

using TcpStream = boost::beast::basic_stream<boost::asio::ip::tcp, boost::asio::any_io_executor>;
using LocalStream =
    boost::beast::basic_stream<boost::asio::local::stream_protocol, boost::asio::any_io_executor>;
using TlsStream = boost::beast::ssl_stream<TcpStream>;

// Runs until the connection ends; never throws. `peer` is shown to handlers; `lane` is of
// the thread it runs on.
boost::asio::awaitable<void> Serve(TcpStream stream, HttpShared& shared, LaneShared& lane,
                                   std::string peer);
boost::asio::awaitable<void> Serve(LocalStream stream, HttpShared& shared, LaneShared& lane,
                                   std::string peer);
boost::asio::awaitable<void> Serve(TlsStream stream, HttpShared& shared, LaneShared& lane,
                                   std::string peer);

}  // namespace hearth
