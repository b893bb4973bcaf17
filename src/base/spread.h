// SPDX-License-Identifier: Apache-2.0
// Lengths that vary as people's do, in an order where even a few have the mean and the median of
// many: a short measurement is then as good as a long one, and a simulation draws the same lengths.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/mix.h"
namespace hearth {

// Steps through [0, 1) by an irrational number: any run of values fills it evenly. Thread: one.
class EvenSpread {
 public:
  // Spreads that are used side by side need different steps, or their values go together.
  static constexpr double kGolden = 0.6180339887498949, kRootTwo = 0.4142135623730951;
  EvenSpread(uint64_t seed, double step)
      : step_(step), at_(static_cast<double>(MixBits(seed) >> 11) * 0x1p-53) {}
  double Share() {
    at_ += step_;
    at_ -= std::floor(at_);
    return at_;
  }
  // From half of the mean to one and a half, at least 1.
  int Around(int mean) {
    const int half = mean / 2;
    return std::max(1, mean - half + static_cast<int>(Share() * (2 * half + 1)));
  }

 private:
  const double step_;
  double at_;
};

}  // namespace hearth
