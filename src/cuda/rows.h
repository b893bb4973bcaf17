// SPDX-License-Identifier: Apache-2.0
// Kernels that take one row per block: residual, norm and quantising; the gated activation. A row
// lies in shared memory as floats between its stages.
#pragma once
#include "cuda/args.h"
#include "cuda/numbers.h"
namespace hearth::cuda {

// One value as two signed bytes, at byte `i` of two words.
HEARTH_DEVICE void SplitValue(int32_t value, int i, uint32_t& hi, uint32_t& lo) {
  const auto low = static_cast<int32_t>(static_cast<int8_t>(value & 255));
  lo |= static_cast<uint32_t>(low & 255) << (8 * i);
  hi |= static_cast<uint32_t>(((value - low) >> 8) & 255) << (8 * i);
}
HEARTH_DEVICE int32_t SumOfBytes(uint32_t word) {
  int32_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int8_t>(word >> (8 * i) & 255u);
  return sum;
}

// Columns [begin, end) of a row, by one warp, four neighbouring columns a lane; from `cols` on
// zero.
HEARTH_DEVICE void SplitStrip(const float* row, const ActRows& act, int64_t index, int begin,
                              int end, float inverse) {
  const int lane = Thread() % kWarp;
  for (int first = begin; first < end; first += 4 * kWarp) {
    const int column = first + 4 * lane;
    uint32_t hi = 0, lo = 0;
    if (column < end) {
      for (int i = 0; i < 4; ++i) {
        if (column + i < act.cols) SplitValue(RoundToInt(row[column + i] * inverse), i, hi, lo);
      }
      *reinterpret_cast<uint32_t*>(act.hi + index * act.stride + column) = hi;
      *reinterpret_cast<uint32_t*>(act.lo + index * act.stride + column) = lo;
    }
    if (act.sum_hi == nullptr) continue;
    int32_t sum_hi = SumOfBytes(hi), sum_lo = SumOfBytes(lo);
    for (int mask = 1; mask < 8; mask *= 2) {  // eight lanes hold a block of 32
      sum_hi += static_cast<int32_t>(ShuffleXor(static_cast<uint32_t>(sum_hi), mask));
      sum_lo += static_cast<int32_t>(ShuffleXor(static_cast<uint32_t>(sum_lo), mask));
    }
    const int block = column / kQuantBlock;
    if (lane % 8 == 0 && column < end && block < act.num_blocks) {
      act.sum_hi[index * act.num_blocks + block] = sum_hi;
      act.sum_lo[index * act.num_blocks + block] = sum_lo;
    }
  }
}

// A row of floats to row `index` of `act`; a warp takes a strip. The row's threads are past
// a barrier. A strip that holds a NaN or an infinity gets a NaN scale and zero values.
template <int kThreads = kRowThreads>
HEARTH_DEVICE void QuantiseRow(const float* row, const ActRows& act, int64_t index) {
  const int lane = Thread() % kWarp;
  for (int strip = Thread() / kWarp; strip < act.num_strips; strip += kThreads / kWarp) {
    const int begin = strip * act.strip, end = Min(begin + act.strip, act.cols);
    uint32_t top = 0;  // magnitudes compare as integers, and NaN above all
    for (int i = begin + lane; i < end; i += kWarp) {
      const uint32_t magnitude = BitsOf(row[i]) & 0x7fffffffu;
      top = magnitude > top ? magnitude : top;
    }
    top = LargestOfWarp(top);
    const bool finite = top < 0x7f800000u;
    const float amax = FloatOf(top);
    // Below 2^-100 the inverse would overflow; such a strip is zero to any reader of its sum.
    const float inverse = finite && amax >= 0x1p-100f ? kActMax / amax : 0.0f;
    if (lane == 0) {
      act.scale[index * act.num_strips + strip] = finite ? amax / kActMax : FloatOf(0x7fc00000u);
    }
    const int last = strip + 1 == act.num_strips ? act.stride : end;
    if (finite) {
      SplitStrip(row, act, index, begin, last, inverse);
    } else {
      ActRows zeros = act;
      zeros.cols = 0;
      SplitStrip(row, zeros, index, begin, last, 0.0f);
    }
  }
}

// What is added to a value of x.
HEARTH_DEVICE float AddedAt(const NormArgs& a, int64_t index, int i) {
  if (a.weights == nullptr) return a.add[index * a.add_stride + i];
  float total = 0.0f;
  for (int64_t c = index * a.active; c < (index + 1) * a.active; ++c) {
    const int64_t slot = a.slot_of != nullptr ? a.slot_of[c] : c;
    total = Fma(a.weights[c], a.add[slot * a.add_stride + i], total);
  }
  return total;
}

// Shared memory: d + 1 floats.
HEARTH_DEVICE void NormKernel(const NormArgs& a) {
  auto* row = reinterpret_cast<float*>(SharedMemory());
  const int64_t block = BlockX(), index = a.rows != nullptr ? a.rows[block] : block;
  float* x = a.x + index * a.d;
  for (int i = Thread(); i < a.d; i += kRowThreads) {
    float value = x[i];
    if (a.add != nullptr) {
      value = Fma(1.0f, AddedAt(a, index, i), value);
      x[i] = value;
    }
    row[i] = value;
  }
  Barrier();
  if (a.gain != nullptr) {
    if (Thread() < kWarp) {
      const float mean = SquaresOfWarp(row, a.d) / static_cast<float>(a.d);
      if (Thread() == 0) row[a.d] = 1.0f / Sqrt(mean + a.eps);
    }
    Barrier();
    const float scale = row[a.d];
    for (int i = Thread(); i < a.d; i += kRowThreads) {
      row[i] = (row[i] * scale) * a.gain[i];
      if (a.h != nullptr) a.h[block * a.d + i] = row[i];
    }
    Barrier();
  }
  if (a.act.hi != nullptr) QuantiseRow(row, a.act, block);
  if (a.supers.hi != nullptr) QuantiseRow(row, a.supers, block);
}

// Comparisons let a NaN through.
HEARTH_DEVICE float GluOf(float gate, float up, float alpha, float limit) {
  if (limit > 0.0f) {
    if (gate > limit) gate = limit;
    if (up > limit) up = limit;
    if (up < -limit) up = -limit;
    return Silu(gate, alpha) * (up + 1.0f);
  }
  return Silu(gate, alpha) * up;
}

// Shared memory: d floats.
HEARTH_DEVICE void GluKernel(const GluArgs& a) {
  auto* row = reinterpret_cast<float*>(SharedMemory());
  const int64_t at = BlockX() * a.stride;
  for (int i = Thread(); i < a.d; i += kRowThreads) {
    row[i] = GluOf(a.gate[at + i], a.up[at + i], a.alpha, a.limit);
    if (a.z != nullptr) a.z[at + i] = row[i];
  }
  Barrier();
  if (a.act.hi != nullptr) QuantiseRow(row, a.act, BlockX());
  if (a.supers.hi != nullptr) QuantiseRow(row, a.supers, BlockX());
}

}  // namespace hearth::cuda
