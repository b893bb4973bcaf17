// SPDX-License-Identifier: Apache-2.0
// The arithmetic of docs/numerics.md for CUDA kernels: cpu/canon.inl's functions, operation by
// operation, and the joins of lanes as shuffles.
#pragma once
#include <cstdint>

#include "cuda/isa.h"
namespace hearth::cuda {

HEARTH_DEVICE uint32_t BitsOf(float x) {
#ifdef __CUDACC__
  return __float_as_uint(x);
#else
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}
HEARTH_DEVICE float FloatOf(uint32_t bits) {
#ifdef __CUDACC__
  return __uint_as_float(bits);
#else
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

HEARTH_DEVICE int Min(int a, int b) { return a < b ? a : b; }
HEARTH_DEVICE int Max(int a, int b) { return a > b ? a : b; }

// Adding and taking away 1.5 * 2^23 rounds a small float to the nearest integer, ties to even.
constexpr float kRound = 12582912.0f;
HEARTH_DEVICE int32_t RoundToInt(float x) { return static_cast<int32_t>((x + kRound) - kRound); }

HEARTH_DEVICE float Exp(float x) {
  constexpr float kLow = -87.0f, kHigh = 88.0f, kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  if (x != x) return x;
  if (x < kLow) return 0.0f;
  if (x > kHigh) x = kHigh;
  const float n = Fma(x, kLog2E, kRound) - kRound;
  float r = Fma(n, -kLn2High, x);
  r = Fma(n, -kLn2Low, r);
  float p = 1.3981999507e-3f;
  p = Fma(p, r, 8.3334519073e-3f);
  p = Fma(p, r, 4.1665795894e-2f);
  p = Fma(p, r, 1.6666665459e-1f);
  p = Fma(p, r, 0.5f);
  p = Fma(p, r, 1.0f);
  p = Fma(p, r, 1.0f);
  return p * FloatOf(static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23);
}

HEARTH_DEVICE float Silu(float x, float alpha) { return x / (1.0f + Exp(-(alpha * x))); }

HEARTH_DEVICE float FromLane(float x, int mask, int site = __builtin_LINE()) {
  return FloatOf(ShuffleXor(BitsOf(x), mask, site));
}

// Sixteen lanes in the order of the definition: with + 8, + 4, + 2, + 1. Both partners of a pair
// add the same two numbers, so all sixteen lanes end with the sum. All 32 lanes call it.
HEARTH_DEVICE float JoinLanes(float x) {
  x += FromLane(x, 8);
  x += FromLane(x, 4);
  x += FromLane(x, 2);
  return x + FromLane(x, 1);
}

// Of all 32 lanes.
HEARTH_DEVICE uint32_t LargestOfWarp(uint32_t x) {
  for (int mask = 16; mask >= 1; mask /= 2) {
    const uint32_t other = ShuffleXor(x, mask);
    x = other > x ? other : x;
  }
  return x;
}

// The sum of squares of n floats in shared memory, in sixteen lanes; all 32 lanes call it and get
// it.
HEARTH_DEVICE float SquaresOfWarp(const float* values, int n) {
  const int lane = Thread() % kWarp;
  float sum = 0.0f;
  for (int i = lane % 16; i < n; i += 16) sum = Fma(values[i], values[i], sum);
  return JoinLanes(sum);
}

}  // namespace hearth::cuda
