// SPDX-License-Identifier: Apache-2.0
// Whether the clock on the wall can be believed: it is set by people and by the network, and a
// machine without a battery begins in 1970. What is deleted because of a wrong date is gone.
#pragma once
#include <cstdint>
#include <optional>
namespace hearth {

// Thread: one.
class ClockWatch {
 public:
  // Believes a clock that went evenly for this long.
  explicit ClockWatch(int64_t settle_s) : settle_s_(settle_s) {}
  // `wall_s` may be any; `steady_s` never goes back. The first call is a jump from nowhere.
  bool IsSettled(int64_t wall_s, int64_t steady_s);

  // Leap seconds, slewing and a slow answer are no jumps; a wrong date is more than this.
  static constexpr int64_t kTolerance_s = 300;

 private:
  const int64_t settle_s_;
  std::optional<int64_t> offset_;  // between the two, when the clock was last set
  int64_t since_s_ = 0;            // steady
};

}  // namespace hearth
