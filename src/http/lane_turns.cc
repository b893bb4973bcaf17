// SPDX-License-Identifier: Apache-2.0
#include "http/lane_turns.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>
#include <utility>

namespace hearth {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

void TurnLine::Charge(Cost cost, Time now) {
  free_at_ = std::max<Time>(free_at_, now - kCredit * kParts) + cost * kParts;
}

bool TurnLine::Enter(Place& place, Time now) {
  if (ring_.empty() && now >= free_at_) {
    Charge(place.cost, now);
    return true;
  }
  // Whole or not at all, should there be no memory for it.
  const auto own = waiting_.try_emplace(place.client).first;
  const bool is_first = own->second.empty();
  try {
    own->second.push_back(&place);
    if (is_first) ring_.push_back(own->first);
  } catch (const std::bad_alloc&) {
    if (is_first) waiting_.erase(own);
    throw;
  }
  place.waits = true;
  return false;
}

void TurnLine::Leave(Place& place) {
  if (!place.waits) return;
  place.waits = false;
  const auto found = waiting_.find(place.client);
  std::erase(found->second, &place);
  if (!found->second.empty()) return;
  waiting_.erase(found);
  std::erase(ring_, place.client);
}

TurnLine::Place* TurnLine::Next(Time now) {
  if (now < free_at_) return nullptr;
  Place* const place = Pop();
  if (place != nullptr) Charge(place->cost, now);
  return place;
}

TurnLine::Place* TurnLine::Pop() {
  if (ring_.empty()) return nullptr;
  const auto found = waiting_.find(ring_.front());
  Place* const place = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) {
    ring_.pop_front();
    waiting_.erase(found);
  } else {
    ring_.splice(ring_.end(), ring_, ring_.begin());  // allocates nothing: no turn can be lost
  }
  place->waits = false;
  return place;
}

asio::awaitable<Clock::duration> LaneTurns::Take(std::string client, TurnLine::Cost cost) {
  // Leaves the line with its frame, also when a server that goes destroys it where it waits.
  struct Standing {
    TurnLine& line;
    TurnLine::Place place;
    ~Standing() { line.Leave(place); }
  };
  const Clock::time_point began = Clock::now();
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer bell(executor, asio::steady_timer::time_point::max());
  Standing standing{line_, {std::move(client), cost, [&bell] { bell.cancel(); }}};
  if (line_.Enter(standing.place, began)) co_return Clock::duration(0);
  if (!std::exchange(is_pumping_, true)) {
    try {
      asio::co_spawn(executor, Pump(), asio::detached);
    } catch (const std::bad_alloc&) {
      is_pumping_ = false;
      throw;
    }
  }
  // Unless the line was given up at once.
  error_code ignored;
  if (standing.place.waits) {
    co_await bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return Clock::now() - began;
}

// Runs while anybody waits. Without memory to wait for the time it is everybody's turn: a line that
// nobody moves would hold all who stand in it for good.
asio::awaitable<void> LaneTurns::Pump() {
  try {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!line_.empty()) {
      timer.expires_at(line_.free_at());
      error_code ignored;
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      if (TurnLine::Place* const next = line_.Next(Clock::now())) next->go();
    }
  } catch (const std::bad_alloc&) {
    while (TurnLine::Place* const next = line_.Pop()) next->go();
  }
  is_pumping_ = false;
}

}  // namespace hearth
