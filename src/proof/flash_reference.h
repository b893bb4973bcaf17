// SPDX-License-Identifier: Apache-2.0
// Attention of one token over an FP16 cache on the CPU: in doubles, and plainly in FP16 as a
// program without thought would do it. What the second is wrong by is the measure for tensor cores.
#pragma once
#include <cstdint>
#include <span>
namespace hearth::cuda {

struct FlashShape {
  int n_heads, n_kv_heads, d_head;
  int max_positions;  // of K and V: [sequences, n_kv_heads, max_positions, d_head]
  float scale;
};
// The largest differences from doubles.
struct FlashErrors {
  double plain = 0;  // of FP16
  double got = 0;
};
FlashErrors FlashErrorsOf(const FlashShape& shape, std::span<const uint16_t> q,
                          std::span<const uint16_t> k, std::span<const uint16_t> v,
                          std::span<const int32_t> lengths, const float* got);

}  // namespace hearth::cuda
