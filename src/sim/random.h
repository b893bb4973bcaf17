// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same everywhere: a seed is a scenario, today and in a year.
#pragma once
#include <cmath>
#include <cstdint>

#include "base/mix.h"
namespace hearth {

// Counts, and mixes the count. Thread: one.
class SimRandom {
 public:
  explicit SimRandom(uint64_t seed) : state_(MixBits(seed ^ 0x5851f42d4c957f2d)) {}
  uint64_t Next() { return MixBits(state_ += kGoldenRatio); }
  // In [0, 1).
  double Share() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // In [low, high], both included.
  int Between(int low, int high) {
    return low + static_cast<int>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  int64_t BetweenUs(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(double share) { return Share() < share; }
  // Even on a logarithmic scale: small values as often as large ones.
  int Around(int low, int high) {
    const double value = low * std::pow(static_cast<double>(high) / low, Share());
    return static_cast<int>(value + 0.5);
  }
  // The time until the next of events that come independently, `mean` apart.
  double Exponential(double mean) { return -mean * std::log1p(-Share()); }
  template <class T>
  const T& Pick(const T* first, int count) {
    return first[Between(0, count - 1)];
  }

 private:
  uint64_t state_;
};

}  // namespace hearth
