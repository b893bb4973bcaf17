// SPDX-License-Identifier: Apache-2.0
// Attention over int8 on AVX-512 with VNNI. A row is one query head of one token, taken in tiles of
// eight whose integer sums grow in registers: queries and weights have 16 bits, so the keys and
// values of a span are multiplied by their high bytes first and, 256 times as much, by their low
// ones.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/kv_int8.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/attend_parts.inl"
#include "cpu/avx512_math.inl"

#include "cpu/avx512_attend_rows.inl"

// Bytes of a row's query and of its weights, first the high ones, then the low ones; rows are not a
// power of two apart.
constexpr int kQueryStride = 2 * kMaxHeadDim + kLine;
constexpr int kWeightStride = 2 * kSpan + kLine;

struct Work : Rows {
  int dims;                  // of a head in a block
  int8_t* queries;           // [rows][high, low][kMaxHeadDim] with kQueryStride
  int32_t* q_zero;           // [rows]: what keys that are stored plus kInt8KeyZero add to a product
  float* q_scale;            // [rows]
  float *k_scale, *v_scale;  // [kSpan]: the keys' already times the attention's scale
  float* scores;             // [kTile, kScoreStride], then the weights
  uint8_t* weights;          // [kTile][high, low][kSpan] with kWeightStride: as whole numbers
  float* weight_scale;       // [kTile]
};
void Place(const AttendArgs& a, Work& w) {
  w.dims = KvDims(a.d_head, 1);
  w.scores = a.scratch;
  w.k_scale = w.scores + kTile * kScoreStride;
  w.v_scale = w.k_scale + kSpan;
  w.weight_scale = w.v_scale + kSpan;
  w.q_scale = w.weight_scale + kTile;
  w.q_zero = reinterpret_cast<int32_t*>(w.q_scale + kAttendRows);
  w.weights = reinterpret_cast<uint8_t*>(w.q_zero + kAttendRows);
  w.queries = reinterpret_cast<int8_t*>(w.weights + kTile * kWeightStride);
  Place(a, reinterpret_cast<float*>(w.queries + kAttendRows * kQueryStride), static_cast<Rows&>(w));
}
static_assert(kAttendScratch >= kTile * (kScoreStride + 1 + kWeightStride / 4) + 2 * kSpan +
                                    kAttendRows * (2 + kQueryStride / 4 + 2 * kMaxHeadDim + 4));

// Sixteen sums. As __m512i, whose lanes are of 64 bits, g++ 12 copies each of them from register to
// register around every addition.
using Sums = int32_t __attribute__((vector_size(64)));
inline Sums AddFours(Sums sum, __m512i u8, __m512i s8) {
  return reinterpret_cast<Sums>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum), u8, s8));
}
inline __m512 FloatOf(Sums sums) { return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(sums)); }

// Four bytes in every lane.
inline __m512i Fours(const void* at) {
  int32_t four;
  __builtin_memcpy(&four, at, sizeof four);
  return _mm512_set1_epi32(four);
}

// One query to whole numbers, as the definition's ToWhole does.
void QuantiseRow(const Work& w, int row) {
  const float* q = w.q[row];
  int8_t *hi = w.queries + row * kQueryStride, *lo = hi + kMaxHeadDim;
  __m512i top = _mm512_setzero_si512(), sum = _mm512_setzero_si512();
  for (int i = 0; i < w.d_head; i += 16) {
    const __m512i bits = _mm512_maskz_loadu_epi32(FirstLanes(w.d_head - i), q + i);
    top = _mm512_max_epu32(top, _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)));
  }
  const uint32_t top_bits = _mm512_reduce_max_epu32(top);
  const bool finite = top_bits < 0x7f800000u;
  const float largest = FloatOf(top_bits);
  const __m512 inverse = _mm512_set1_ps(largest >= 0x1p-100f ? kActMax / largest : 0.0f);
  for (int i = 0; i < w.d_head; i += 16) {
    const __mmask16 lanes = finite ? FirstLanes(w.d_head - i) : __mmask16{0};
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, q + i), inverse);
    const __m512i value = _mm512_cvtps_epi32(scaled);
    const __m512i low = _mm512_srai_epi32(_mm512_slli_epi32(value, 24), 24);
    const __m512i high = _mm512_srai_epi32(_mm512_sub_epi32(value, low), 8);
    _mm_mask_storeu_epi8(hi + i, FirstLanes(w.dims - i), _mm512_cvtepi32_epi8(high));
    _mm_mask_storeu_epi8(lo + i, FirstLanes(w.dims - i), _mm512_cvtepi32_epi8(low));
    sum = _mm512_add_epi32(sum, value);
  }
  w.q_zero[row] = kInt8KeyZero * _mm512_reduce_add_epi32(sum);
  w.q_scale[row] = finite ? largest / kActMax : FloatOf(0x7fc00000u);
}

// Adds the products of one half of the queries, and asks memory for half of the blocks' values.
template <int kHalf, int kRows, int kBlocks>
[[gnu::always_inline]] inline void AddKeys(const Work& w, const Head<int8_t>* heads, int row,
                                           Sums (&sum)[kRows][kBlocks]) {
  const int8_t* queries = w.queries + row * kQueryStride + kHalf * kMaxHeadDim;
  const int8_t *keys[kBlocks], *wanted[kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) keys[b] = heads[b].k, wanted[b] = heads[b].v;
#pragma GCC unroll 2
  for (int d = 0; d < w.dims; d += 4) {
    __m512i k[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      k[b] = _mm512_loadu_si512(keys[b] + d * kBlockTokens);
      if (b % 2 == kHalf) Prefetch(wanted[b] + d * kBlockTokens);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i four = Fours(queries + r * kQueryStride + d);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sum[r][b] = AddFours(sum[r][b], k[b], four);
    }
  }
}

// Scores of kRows rows for kBlocks blocks; lanes nobody may see are computed and not used.
template <int kRows, int kBlocks>
void Scores(const Work& w, const Span<int8_t>& span, int row, int block) {
  const Head<int8_t>* heads = span.heads + block;
  Sums sum[kRows][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[r][b] = Sums{};
  }
  AddKeys<0>(w, heads, row, sum);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[r][b] = (sum[r][b] << 8) - w.q_zero[row + r];
  }
  AddKeys<1>(w, heads, row, sum);
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const int at = (block + b) * kBlockTokens;
    const __m512 k_scale = _mm512_loadu_ps(w.k_scale + at);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 q_scale = _mm512_set1_ps(w.q_scale[row + r]);
      const __m512 dot = _mm512_mul_ps(FloatOf(sum[r][b]), q_scale);
      _mm512_storeu_ps(w.scores + r * kScoreStride + at, _mm512_mul_ps(dot, k_scale));
    }
  }
}

template <int kRows>
void ScoreTile(const Work& w, const Span<int8_t>& span, int row, const Seen& seen) {
  constexpr int kWide = kRows == kTile ? 2 : 4;
  const int end = RoundedUp(seen.end);
  int b = seen.begin / kBlockTokens;
  for (; b + kWide <= end; b += kWide) Scores<kRows, kWide>(w, span, row, b);
  for (; b < end; ++b) Scores<kRows, 1>(w, span, row, b);
}

// Scores of kRows rows from row `r` of the tile on to weights times their value's scale, and these
// to whole numbers: zero for hidden lanes.
template <int kRows, bool kMasked>
void Weigh(const Work& w, int row, int r0, int block_begin, int block_end, const Seen& seen) {
  float* scores = w.scores + r0 * kScoreStride;
  __m512 highest[kRows], sum[kRows], factor[kRows];
  __m512i largest[kRows];
  for (int r = 0; r < kRows; ++r) {
    highest[r] = _mm512_set1_ps(w.span_top[row + r0 + r]);
    sum[r] = _mm512_setzero_ps();
    largest[r] = _mm512_setzero_si512();
  }
  for (int b = block_begin; b < block_end; ++b) {
    const __mmask16 lanes = kMasked ? Visible(b, seen) : __mmask16{0xffff};
    const __m512 scale = _mm512_loadu_ps(w.v_scale + b * kBlockTokens);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      float* at = scores + r * kScoreStride + b * kBlockTokens;
      const __m512 part =
          ExpOfNonPositive(_mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, at), highest[r]));
      sum[r] = _mm512_mask_add_ps(sum[r], lanes, sum[r], part);
      const __m512 weight = _mm512_maskz_mul_ps(lanes, part, scale);
      // None is below zero, but a NaN may have a sign, which puts it above all.
      largest[r] = _mm512_max_epu32(largest[r], _mm512_castps_si512(weight));
      _mm512_storeu_ps(at, weight);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    w.span_weight[row + r0 + r] = Join16(sum[r]);
    const uint32_t bits = _mm512_reduce_max_epu32(largest[r]);
    const bool finite = bits < 0x7f800000u;
    const float top = FloatOf(bits);
    factor[r] = _mm512_set1_ps(finite && top >= 0x1p-100f ? kInt8WeightMax / top : 0.0f);
    w.weight_scale[r0 + r] = finite ? top / kInt8WeightMax : FloatOf(0x7fc00000u);
  }
  for (int b = block_begin; b < block_end; ++b) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const int at = b * kBlockTokens;
      // Of a NaN any bytes will do: its row's scale is NaN.
      const __m512 scaled =
          _mm512_mul_ps(_mm512_loadu_ps(scores + r * kScoreStride + at), factor[r]);
      const __m512i whole = _mm512_cvtps_epi32(scaled);
      uint8_t* to = w.weights + (r0 + r) * kWeightStride + at;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                       _mm512_cvtepi32_epi8(_mm512_srli_epi32(whole, 8)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + kSpan), _mm512_cvtepi32_epi8(whole));
    }
  }
}

// Adds the products of one half of the weights, and asks memory for half of the same share of the
// next span's keys.
template <int kHalf, int kRows, int kVectors>
[[gnu::always_inline]] inline void AddValues(const Work& w, const Span<int8_t>& span, int dim,
                                             int block_begin, int block_end,
                                             Sums (&sum)[kRows][kVectors]) {
  const uint8_t* weights = w.weights + kHalf * kSpan + block_begin * kBlockTokens;
  const int64_t stride = w.dims * 4;
  const int64_t share = (dim + kHalf * kVectors * 8) * kBlockTokens;
  for (int b = block_begin; b < block_end; ++b) {
    const int8_t* values = span.heads[b].v + dim * 4;
    const int8_t* next = span.heads[span.num_blocks + b].k + share;
    for (int j = 0; j < kBlockTokens; j += 4) {
      __m512i v[kVectors];
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        v[i] = _mm512_loadu_si512(values + i * kLine);
        if (i % 2 == 0) Prefetch(next + i / 2 * kLine);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i four = Fours(weights + r * kWeightStride);
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) sum[r][i] = AddFours(sum[r][i], four, v[i]);
      }
      weights += 4;
      values += stride;
      next += (kVectors + 1) / 2 * kLine;
    }
  }
}

// kVectors * 16 dimensions of the span's values.
template <int kRows, int kVectors>
void Values(const Work& w, const Span<int8_t>& span, int row, int dim, int block_begin,
            int block_end) {
  Sums sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sum[r][i] = Sums{};
  }
  AddValues<0>(w, span, dim, block_begin, block_end, sum);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sum[r][i] = sum[r][i] << 8;
  }
  AddValues<1>(w, span, dim, block_begin, block_end, sum);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 scale = _mm512_set1_ps(w.weight_scale[r]);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      _mm512_storeu_ps(w.value + (row + r) * w.padded + dim + i * 16,
                       _mm512_mul_ps(FloatOf(sum[r][i]), scale));
    }
  }
}

template <int kRows>
void ValueTile(const Work& w, const Span<int8_t>& span, int row, const Seen& seen) {
  constexpr int kVectors = kRows == kTile ? 2 : 4;
  const int begin = seen.begin / kBlockTokens, end = RoundedUp(seen.end);
  int d = 0;
  for (; d + kVectors * 16 <= w.padded; d += kVectors * 16) {
    Values<kRows, kVectors>(w, span, row, d, begin, end);
  }
  for (; d < w.padded; d += 16) Values<kRows, 1>(w, span, row, d, begin, end);
}

void AddSpan(const AttendArgs& a, const Work& w, const Span<int8_t>& span) {
  LoadScales(a, span, w.k_scale, w.v_scale);
  for (int b = 0; b < span.num_blocks; ++b) {
    Prefetch(span.heads[span.num_blocks + b].k_scale);
    Prefetch(span.heads[span.num_blocks + b].v_scale);
  }
  EachTile(w.num_rows, [&]<int kRows>(int row) {
    const Seen seen = SeenBy(w, span, row, row + kRows - 1);
    if (seen.begin == seen.end) return;
    ScoreTile<kRows>(w, span, row, seen);
    WeighTile<kRows>(
        w, span, row, w.scores,
        [&]<int kTogether, bool kMasked>(int r, int begin, int end, const Seen& visible) {
          Weigh<kTogether, kMasked>(w, row, r, begin, end, visible);
        });
    ValueTile<kRows>(w, span, row, seen);
  });
}

void AttendRows(const AttendArgs& a, int first, int count, int kv_head, Work& w) {
  StartRows(a, first, count, kv_head, w);
  for (int r = 0; r < w.num_rows; ++r) QuantiseRow(w, r);
  EachSpan<int8_t>(a, first, count, kv_head, w, AddSpan);
}

void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  EachRows<Work>(a, kv_begin, kv_end, AttendRows);
}

}  // namespace

void AddAvx512AttendInt8(KernelTable& table) noexcept { table.attend_int8 = Attend; }

}  // namespace hearth
