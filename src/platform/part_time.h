// SPDX-License-Identifier: Apache-2.0
// When a worker rests because its process has spent the time that a quota pays for.
#pragma once
#include <algorithm>
#include <cstdint>
namespace hearth {

// A quota of 1.5 processors and two threads that never rest: both run for three quarters of each
// period, then the system stops all of them together. With one that rests half of the time the
// other never stops, and one thread for half of a period gets more done than two for a quarter,
// because they share memory. Everything that the process does counts, also what no worker does.
// Pure: clocks are arguments, in nanoseconds.
class PartTime {
 public:
  static constexpr int64_t kRest = 5'000'000;   // at a time
  static constexpr int64_t kEvery = 1'000'000;  // between two looks at what was spent
  // After a pause so much more may be spent than is paid for meanwhile: short requests are quick.
  static constexpr double kMost = 25e6;
  // Of the quota: so that a period hardly ever ends with nothing left, which stops everybody.
  static constexpr double kSpent = 0.97;

  // In processors; 0: there is no quota, and it never rests.
  explicit PartTime(double quota) : quota_(kSpent * quota) {}

  // `spent()` is the processor time of the whole process, asked once in kEvery.
  template <class F>
  bool ShouldRest(int64_t now, F&& spent) {
    if (quota_ <= 0 || now < next_) return false;
    next_ = now + kEvery;
    const int64_t total = spent();
    if (was_ >= 0) {
      credit_ += quota_ * static_cast<double>(now - was_) - static_cast<double>(total - spent_);
    }
    credit_ = std::clamp(credit_, -kMost, kMost);
    was_ = now;
    spent_ = total;
    if (credit_ >= 0) return false;
    next_ = now;  // another look right after the rest
    return true;
  }

 private:
  double quota_, credit_ = kMost;
  int64_t was_ = -1, spent_ = 0, next_ = 0;
};

}  // namespace hearth
