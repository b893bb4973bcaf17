// SPDX-License-Identifier: Apache-2.0
// Events per second over about the last seconds of work. Pure.
#pragma once
#include <cmath>
namespace hearth {

// Idle time makes old work count less but is no slow work: the rate is right from the first second
// after it.
class FadingRate {
 public:
  explicit FadingRate(double seconds) : seconds_(seconds) {}
  // `count` events in `worked_s` of work, which came after `idle_s` without any.
  void Add(double count, double worked_s, double idle_s) {
    const double keep = std::exp(-(worked_s + idle_s) / seconds_);
    count_ = count_ * keep + count;
    time_s_ = time_s_ * keep + worked_s;
  }
  double per_s() const { return time_s_ > 0 ? count_ / time_s_ : 0; }

 private:
  double seconds_, count_ = 0, time_s_ = 0;
};

}  // namespace hearth
