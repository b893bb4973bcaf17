// SPDX-License-Identifier: Apache-2.0
#include "engine/random_draw.h"

namespace hearth {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd

// splitmix64's finaliser: every input bit reaches every output bit.
uint64_t Mixed(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double UniformDraw(const DrawPlace& place) {
  const uint64_t lane =
      (uint64_t{place.choice} << 32) | static_cast<uint64_t>(static_cast<uint32_t>(place.stream));
  // Each line is one to one in what it adds, so two places share a key only by accident of 64 bits.
  uint64_t key = Mixed(place.seed + kGolden);
  if (lane != 0) key = Mixed(key ^ Mixed(lane));
  const uint64_t bits = Mixed(key + place.step * kGolden);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace hearth
