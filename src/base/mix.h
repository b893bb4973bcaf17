// SPDX-License-Identifier: Apache-2.0
// 64 bits stirred until every bit of the input reaches every bit of the output. Not a secret: keys
// that strangers must not guess are made elsewhere.
#pragma once
#include <cstdint>
namespace hearth {

inline constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd

// One to one; splitmix64's last step.
constexpr uint64_t MixBits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace hearth
