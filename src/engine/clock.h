// SPDX-License-Identifier: Apache-2.0
// Time as the engine sees it: microseconds that never run backwards. Tests and the simulation bring
// their own clock; nothing else in the room asks what time it is.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
namespace hearth {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_us() const = 0;
};

// Thread: any.
class SteadyClock : public Clock {
 public:
  int64_t now_us() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

// Stands still until told otherwise. Thread: any reads, one advances.
class VirtualClock : public Clock {
 public:
  int64_t now_us() const override { return now_us_.load(std::memory_order_relaxed); }
  void Advance(int64_t us) { now_us_.fetch_add(us, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> now_us_ = 0;
};

}  // namespace hearth
