// SPDX-License-Identifier: Apache-2.0
// Who may next do something dear on a thread that all its connections share: read or write another
// piece of megabytes, make a TLS handshake, or begin a connection. Internal to the room.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <unordered_map>
namespace hearth {

// Clients take turns, and all turns together a quarter of the time: however many connections have
// megabytes to move, whoever has a few bytes waits for one piece of them at most. Pure.
class TurnLine {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Cost = std::chrono::microseconds;
  // For each part of the thread's time that turns take it has three others.
  static constexpr int kParts = 4;
  // So much may be done at once after a pause: one upload alone need not wait.
  static constexpr Cost kCredit{2'000};

  struct Place {
    std::string client;
    Cost cost;
    std::function<void()> go;
    bool waits = false;  // in line
  };
  // True: go on at once. Otherwise it stays in line until Next returns it, or it leaves.
  bool Enter(Place& place, Time now);
  void Leave(Place& place);
  // Whose turn it is, if anybody's is.
  Place* Next(Time now);
  // Whoever is first in line, whatever the time, and for nothing; null: nobody is.
  Place* Pop();
  bool empty() const { return ring_.empty(); }
  Time free_at() const { return free_at_; }

 private:
  void Charge(Cost cost, Time now);

  std::unordered_map<std::string, std::deque<Place*>> waiting_;
  std::list<std::string> ring_;  // clients that wait, in the order of their turns
  Time free_at_{};
};

// The same for coroutines. Thread: the lane's; it outlives what the lane runs.
class LaneTurns {
 public:
  // Returns when its turn has come, with how long that took.
  boost::asio::awaitable<std::chrono::steady_clock::duration> Take(std::string client,
                                                                   TurnLine::Cost cost);
  // Assumed, not measured: 1 us per KiB for a copy into memory that is touched for the first time.
  static TurnLine::Cost ForBytes(size_t bytes) {
    return TurnLine::Cost(static_cast<int64_t>(bytes >> 10) + 4);
  }
  // Assumed, not measured: a signature with RSA of 2048 bits, and the exchange of keys.
  static constexpr TurnLine::Cost kHandshake{800};
  // Assumed, not measured: what a connection with one small request costs its lane. However many an
  // address opens, all others' come between them.
  static constexpr TurnLine::Cost kConnection{100};
  // What is smaller is done without a turn.
  static constexpr size_t kPiece = size_t{64} << 10;

 private:
  boost::asio::awaitable<void> Pump();

  TurnLine line_;
  bool is_pumping_ = false;
};

}  // namespace hearth
