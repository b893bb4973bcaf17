// SPDX-License-Identifier: Apache-2.0
// Decode attention over an FP16 cache with FP16 tensor cores
// (include/hearth/flash_attention_v2_opt.h). The only kernel whose last bits are the hardware's
// own: sums inside a product of halves are not specified. A block takes one split of one sequence
// for up to 16 query heads of one KV head.
#pragma once
#include "cuda/args.h"
#include "cuda/numbers.h"
namespace hearth::cuda {

// A warp's share of the rows: with g = lane / 4 it holds heads g and g + 8.
struct FlashRows {
  float top[2], sum[2];
};

// Where a tile of sixteen positions starts in K and V, in halves.
HEARTH_DEVICE int64_t FlashTileAt(const FlashArgs& a, int sequence, int kv_head, int tile,
                                  int d_head) {
  if (a.tables != nullptr) {
    const int64_t block = a.tables[int64_t{sequence} * a.table_stride + tile];
    return (block * a.n_kv_heads + kv_head) * kBlockTokens * d_head;
  }
  return ((int64_t{sequence} * a.n_kv_heads + kv_head) * a.max_positions +
          int64_t{tile} * kBlockTokens) *
         d_head;
}

HEARTH_DEVICE uint32_t PackHalves(float low, float high) {
  return uint32_t{HalfOfFloat(low)} | uint32_t{HalfOfFloat(high)} << 16;
}

// The queries as factors: products of 32 dimensions come in pairs, and lane t holds dimensions
// 8 t to 8 t + 7 of each, so that K is read sixteen bytes at a time. Heads that are not there are
// 0.
template <int kDims>
HEARTH_DEVICE void LoadQueries(const FlashArgs& a, int sequence, int first_head, int num_heads,
                               uint32_t (&q)[kDims / 16][4]) {
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  for (int pair = 0; pair < kDims / 32; ++pair) {
    for (int half = 0; half < 2; ++half) {
      const int head = g + 8 * half;
      Words4 words{};
      if (head < num_heads) {
        const int64_t at = (int64_t{sequence} * a.n_heads + first_head + head) * kDims;
        words = LoadOnce16(a.q + at + pair * 32 + t * 8);
      }
      q[2 * pair][half] = words.x;
      q[2 * pair][half + 2] = words.y;
      q[2 * pair + 1][half] = words.z;
      q[2 * pair + 1][half + 2] = words.w;
    }
  }
}

// Scores of eight positions from `first` on: columns are positions.
template <int kDims>
HEARTH_DEVICE void FlashScores(const uint16_t* k, int first, int count,
                               const uint32_t (&q)[kDims / 16][4], float (&scores)[4]) {
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  for (int i = 0; i < 4; ++i) scores[i] = 0.0f;
  for (int pair = 0; pair < kDims / 32; ++pair) {
    Words4 words{};
    if (first + g < count) words = LoadOnce16(k + (first + g) * kDims + pair * 32 + t * 8);
    const uint32_t one[2] = {words.x, words.y}, two[2] = {words.z, words.w};
    MmaHalf(scores, q[2 * pair], one);
    MmaHalf(scores, q[2 * pair + 1], two);
  }
}

// The largest of a row, whose columns four lanes hold.
HEARTH_DEVICE float FlashTop(float x) {
  for (int mask = 1; mask < 4; mask *= 2) {
    const float other = FromLane(x, mask);
    x = x <= other ? other : x;
  }
  return x;
}

// Scores become weights against the new largest; returns by what older results shrink.
HEARTH_DEVICE void FlashWeights(float (&scores)[2][4], FlashRows& rows, float (&shrink)[2]) {
  for (int half = 0; half < 2; ++half) {
    float top = rows.top[half];
    for (int tile = 0; tile < 2; ++tile) {
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        top = top <= scores[tile][i] ? scores[tile][i] : top;
      }
    }
    top = FlashTop(top);
    // Nothing seen yet: nothing to shrink.
    shrink[half] = rows.top[half] == top ? 1.0f : Exp(rows.top[half] - top);
    rows.top[half] = top;
    float sum = 0.0f;
    for (int tile = 0; tile < 2; ++tile) {
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        scores[tile][i] = Exp(scores[tile][i] - top);
        sum += scores[tile][i];
      }
    }
    rows.sum[half] = rows.sum[half] * shrink[half] + sum;
  }
}

// One half of each of two rows of V, side by side; `i` of eight.
HEARTH_DEVICE uint32_t HalvesAt(const Words4& low, const Words4& high, int i) {
  const uint32_t* a = &low.x;
  const uint32_t* b = &high.x;
  return Permute(a[i / 2], b[i / 2], i % 2 == 0 ? 0x5410u : 0x7632u);
}

// Weighted values: column g of product j is dimension 8 g + j, so that a row of V is read sixteen
// bytes at a time; rows are positions 2 t, 2 t + 1, 2 t + 8 and 2 t + 9.
template <int kDims>
HEARTH_DEVICE void FlashValues(const uint16_t* v, int count, const float (&weights)[2][4],
                               float (&out)[kDims / 8][4]) {
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  uint32_t p[4];
  for (int i = 0; i < 4; ++i) {
    p[i] = PackHalves(weights[i / 2][i % 2 * 2], weights[i / 2][i % 2 * 2 + 1]);
  }
  for (int part = 0; part < kDims / 64; ++part) {
    Words4 rows[4];
    for (int i = 0; i < 4; ++i) {
      const int position = 2 * t + i % 2 + i / 2 * 8;
      rows[i] = Words4{};
      if (position < count) rows[i] = LoadOnce16(v + position * kDims + part * 64 + g * 8);
    }
    for (int j = 0; j < 8; ++j) {
      const uint32_t b[2] = {HalvesAt(rows[0], rows[1], j), HalvesAt(rows[2], rows[3], j)};
      MmaHalf(out[part * 8 + j], p, b);
    }
  }
}

// The dimension of result i of product j, of this lane.
HEARTH_DEVICE int FlashDim(int j, int i) {
  const int column = 2 * (Thread() % 4) + i % 2;
  return j / 8 * 64 + column * 8 + j % 8;
}

constexpr int kFlashWarps = kFlashThreads / kWarp;
// Of each warp: its results, largest score and sum of weights, for sixteen heads.
constexpr int64_t FlashSharedBytes(int d_head) {
  return int64_t{4} * kFlashWarps * 16 * (d_head + 2);
}

// Warps meet in shared memory; thread by thread they are merged in ascending order.
template <int kDims>
HEARTH_DEVICE void FlashMerge(const FlashArgs& a, int sequence, int first_head, int num_heads) {
  constexpr int kRow = kDims + 2;
  const auto* all = reinterpret_cast<const float*>(SharedMemory());
  for (int i = Thread(); i < num_heads * kRow; i += kFlashThreads) {
    const int head = i / kRow, d = i - head * kRow;
    float top = FloatOf(0xff800000u);
    for (int w = 0; w < kFlashWarps; ++w) {
      const float other = all[(w * 16 + head) * kRow + kDims];
      top = top <= other ? other : top;
    }
    float value = d == kDims ? top : 0.0f;
    for (int w = 0; w < kFlashWarps && d != kDims; ++w) {
      const float* row = all + (w * 16 + head) * kRow;
      const float share = row[kDims] == top ? 1.0f : Exp(row[kDims] - top);
      value = Fma(row[d], share, value);
    }
    const int64_t part = (int64_t{sequence} * a.n_heads + first_head + head) * a.splits + BlockX();
    a.parts[part * kRow + d] = value;
  }
}

// grid (splits, n_kv_heads * tiles of 16 heads, sequences). Shared memory: FlashSharedBytes.
template <int kDims>
HEARTH_DEVICE void FlashKernel(const FlashArgs& a) {
  constexpr int kRow = kDims + 2;
  const int group = a.n_heads / a.n_kv_heads, head_tiles = (group + 15) / 16;
  const int sequence = BlockZ(), kv_head = BlockY() / head_tiles;
  const int head_tile = BlockY() - kv_head * head_tiles;
  const int first_head = kv_head * group + head_tile * 16;
  const int num_heads = Min(group - head_tile * 16, 16);
  const int length = a.lengths[sequence];
  const int begin = BlockX() * a.split_tiles;
  const int end = Min(begin + a.split_tiles, (length + kBlockTokens - 1) / kBlockTokens);
  uint32_t q[kDims / 16][4];
  LoadQueries<kDims>(a, sequence, first_head, num_heads, q);
  float out[kDims / 8][4] = {};
  const float none = FloatOf(0xff800000u);
  FlashRows rows{{none, none}, {0.0f, 0.0f}};
  const int t = Thread() % 4;
  for (int tile = begin + Thread() / kWarp; tile < end; tile += kFlashWarps) {
    const int64_t at = FlashTileAt(a, sequence, kv_head, tile, kDims);
    const int count = Min(length - tile * kBlockTokens, kBlockTokens);
    float scores[2][4], shrink[2];
    for (int n = 0; n < 2; ++n) {
      FlashScores<kDims>(a.k + at, 8 * n, count, q, scores[n]);
      for (int i = 0; i < 4; ++i) {
        const bool sees = 8 * n + 2 * t + i % 2 < count;
        scores[n][i] = sees ? scores[n][i] * a.scale : none;
      }
    }
    FlashWeights(scores, rows, shrink);
    for (int j = 0; j < kDims / 8; ++j) {
      for (int i = 0; i < 4; ++i) out[j][i] = out[j][i] * shrink[i / 2];
    }
    FlashValues<kDims>(a.v + at, count, scores, out);
  }
  auto* shared = reinterpret_cast<float*>(SharedMemory());
  for (int half = 0; half < 2; ++half) {
    const int head = Thread() % kWarp / 4 + 8 * half;
    float* row = shared + (Thread() / kWarp * 16 + head) * kRow;
    for (int j = 0; j < kDims / 8; ++j) {
      row[FlashDim(j, 0)] = out[j][2 * half];
      row[FlashDim(j, 1)] = out[j][2 * half + 1];
    }
    float sum = rows.sum[half];
    sum += FromLane(sum, 1);
    sum += FromLane(sum, 2);
    if (t == 0) row[kDims] = rows.top[half];
    if (t == 0) row[kDims + 1] = sum;
  }
  Barrier();
  FlashMerge<kDims>(a, sequence, first_head, num_heads);
}

// Splits in ascending order, divided by the sum of their weights. A warp per head: grid (n_heads,
// sequences). A sequence without positions gets zeros.
HEARTH_DEVICE void FlashReduceKernel(const FlashArgs& a) {
  const int head = BlockX(), sequence = BlockY(), row = a.d_head + 2;
  const float* parts = a.parts + (int64_t{sequence} * a.n_heads + head) * a.splits * row;
  float top = FloatOf(0xff800000u);
  for (int s = 0; s < a.splits; ++s) {
    const float other = parts[s * row + a.d_head];
    top = top <= other ? other : top;
  }
  float total = 0.0f;
  for (int s = 0; s < a.splits; ++s) {
    const float* part = parts + s * row;
    const float share = part[a.d_head] == top ? 1.0f : Exp(part[a.d_head] - top);
    total = Fma(part[a.d_head + 1], share, total);
  }
  for (int d = Thread(); d < a.d_head; d += kWarp) {
    float value = 0.0f;
    for (int s = 0; s < a.splits; ++s) {
      const float* part = parts + s * row;
      const float share = part[a.d_head] == top ? 1.0f : Exp(part[a.d_head] - top);
      value = Fma(part[d], share, value);
    }
    a.out[(int64_t{sequence} * a.n_heads + head) * a.d_head + d] =
        total > 0.0f ? value / total : 0.0f;
  }
}

}  // namespace hearth::cuda
