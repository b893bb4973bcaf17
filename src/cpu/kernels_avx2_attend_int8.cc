// SPDX-License-Identifier: Apache-2.0
// Attention over int8 on AVX2: queries and weights are whole numbers of 16 bits, so the bytes of K
// and V are widened to words. The even and the odd ones of four neighbours come apart, and each
// pair is one lane of a dot product, which AVX-VNNI adds up on the way.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/kv_int8.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"
#include "cpu/level.inl"

#include "cpu/attend_parts.inl"
#include "cpu/avx2_math.inl"

#include "cpu/avx2_attend_heads.inl"

inline __m256i AddPairs(__m256i sum, __m256i a, __m256i b) {
  if constexpr (kVnni) {
    return _mm256_dpwssd_avx_epi32(sum, a, b);
  } else {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  }
}
// Two words in every lane.
inline __m256i Pair(const int16_t* at) {
  int32_t pair;
  __builtin_memcpy(&pair, at, sizeof pair);
  return _mm256_set1_epi32(pair);
}
inline __m256i Line(const int8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
struct Words {
  __m256i even, odd;
};
inline Words Unsigned(__m256i bytes) {
  return {_mm256_and_si256(bytes, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(bytes, 8)};
}
inline Words Signed(__m256i bytes) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
}

// n floats, a multiple of eight, to whole numbers of up to `max`, as the definition's ToWhole does.
// Of each four neighbours come 0 and 2, then 1 and 3. Returns their scale.
float ToWhole(const float* values, int n, float max, int16_t* whole) {
  __m256i tops = _mm256_setzero_si256();
  for (int i = 0; i < n; i += 8) {
    const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(values + i));
    tops = _mm256_max_epu32(tops, _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)));
  }
  alignas(32) uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), tops);
  uint32_t top = 0;
  for (const uint32_t lane : lanes) top = lane > top ? lane : top;
  const bool finite = top < 0x7f800000u;
  const float largest = FloatOf(top);
  const __m256 inverse = _mm256_set1_ps(largest >= 0x1p-100f ? max / largest : 0.0f);
  for (int i = 0; i < n; i += 8) {
    __m256i eight = _mm256_setzero_si256();
    if (finite) {
      eight = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(values + i), inverse));
      eight = _mm256_shuffle_epi32(eight, _MM_SHUFFLE(3, 1, 2, 0));
    }
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(whole + i), words);
  }
  return finite ? largest / max : FloatOf(0x7fc00000u);
}

template <int kHeads>
struct Whole {
  alignas(32) int16_t queries[kHeads][kMaxHeadDim];
  alignas(32) int16_t weights[kHeads][kSpan];
  float q_scale[kHeads], weight_scale[kHeads];
  int32_t q_zero[kHeads];  // what keys that are stored plus kInt8KeyZero add to a product
};

template <int kHeads>
void QuantiseQueries(const AttendArgs& a, const float* q, Whole<kHeads>& whole) {
  const int padded = (a.d_head + 7) / 8 * 8;
  alignas(32) float query[kMaxHeadDim];
  for (int h = 0; h < kHeads; ++h) {
    for (int d = 0; d < padded; ++d) query[d] = d < a.d_head ? q[h * a.d_head + d] : 0.0f;
    whole.q_scale[h] = ToWhole(query, padded, kActMax, whole.queries[h]);
    int32_t sum = 0;
    for (int d = 0; d < padded; ++d) sum += whole.queries[h][d];
    whole.q_zero[h] = kInt8KeyZero * sum;
  }
}

// Weights of positions that are hidden, whose values' scales may be anything, are zero.
void Hide(const Span<int8_t>& span, float* weights) {
  const int base = span.block_begin * kBlockTokens, count = span.num_blocks() * kBlockTokens;
  for (int j = 0; j < span.begin - base; ++j) weights[j] = 0.0f;
  for (int j = span.end - base; j < count; ++j) weights[j] = 0.0f;
}

// Scores of kHeads heads, block by block; lanes nobody may see are computed and not used.
template <int kHeads>
void Scores(const AttendArgs& a, const Span<int8_t>& span, const Whole<kHeads>& whole,
            float* scores) {
  for (int b = 0; b < span.num_blocks(); ++b) {
    const Head<int8_t>& head = span.heads[b];
    __m256i sum[kHeads][2];
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) sum[h][0] = sum[h][1] = _mm256_setzero_si256();
    for (int d = 0; d < a.d_head; d += 4) {
      const Words first = Unsigned(Line(head.k + d * kBlockTokens));
      const Words second = Unsigned(Line(head.k + d * kBlockTokens + 32));
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) {
        const __m256i even = Pair(whole.queries[h] + d), odd = Pair(whole.queries[h] + d + 2);
        sum[h][0] = AddPairs(AddPairs(sum[h][0], first.even, even), first.odd, odd);
        sum[h][1] = AddPairs(AddPairs(sum[h][1], second.even, even), second.odd, odd);
      }
    }
    for (int half = 0; half < 2; ++half) {
      const __m256 k_scale =
          _mm256_mul_ps(_mm256_loadu_ps(head.k_scale + half * 8), _mm256_set1_ps(a.scale));
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) {
        const __m256i exact = _mm256_sub_epi32(sum[h][half], _mm256_set1_epi32(whole.q_zero[h]));
        const __m256 dot =
            _mm256_mul_ps(_mm256_cvtepi32_ps(exact), _mm256_set1_ps(whole.q_scale[h]));
        _mm256_storeu_ps(scores + h * kSpan + b * kBlockTokens + half * 8,
                         _mm256_mul_ps(dot, k_scale));
      }
    }
  }
}

// Sixteen dimensions of kHeads heads, or the last eight.
template <int kHeads, int kVectors>
void Values(const AttendArgs& a, const Span<int8_t>& span, const Whole<kHeads>& whole, int dim,
            float* value) {
  __m256i sum[kHeads][kVectors];
  for (auto& head : sum) {
    for (__m256i& vector : head) vector = _mm256_setzero_si256();
  }
  const int dims = KvDims(a.d_head, 1);
  for (int j = 0; j < span.num_blocks() * kBlockTokens; j += 4) {
    const int8_t* line = span.heads[j / kBlockTokens].v + Int8ValueAt(dims, dim, j % kBlockTokens);
    Words v[kVectors];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) v[i] = Signed(Line(line + i * 32));
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m256i even = Pair(whole.weights[h] + j), odd = Pair(whole.weights[h] + j + 2);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) {
        sum[h][i] = AddPairs(AddPairs(sum[h][i], v[i].even, even), v[i].odd, odd);
      }
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int i = 0; i < kVectors; ++i) {
      const __m256 scale = _mm256_set1_ps(whole.weight_scale[h]);
      _mm256_storeu_ps(value + h * kMaxHeadDim + dim + i * 8,
                       _mm256_mul_ps(_mm256_cvtepi32_ps(sum[h][i]), scale));
    }
  }
}

template <int kHeads>
void AttendHeads(const AttendArgs& a, int t, int kv_head, int head) {
  Whole<kHeads> whole;
  QuantiseQueries(a, a.q + t * a.q_stride + int64_t{head} * a.d_head, whole);
  EachSpan<int8_t, kHeads>(
      a, t, kv_head, head, [&](const Span<int8_t>& span, float* scores, Sums* sums, float* value) {
        Scores(a, span, whole, scores);
        for (int h = 0; h < kHeads; ++h) {
          sums[h] = Weigh(span, scores + h * kSpan);
          Hide(span, scores + h * kSpan);
          whole.weight_scale[h] = ToWhole(scores + h * kSpan, span.num_blocks() * kBlockTokens,
                                          kInt8WeightMax, whole.weights[h]);
        }
        int d = 0;
        for (; d + 16 <= a.d_head; d += 16) Values<kHeads, 2>(a, span, whole, d, value);
        for (; d < a.d_head; d += 8) Values<kHeads, 1>(a, span, whole, d, value);
      });
}

void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  EachHeads(a, kv_begin, kv_end, AttendHeads<4>, AttendHeads<1>);
}

}  // namespace

template <>
void AddAvx2AttendInt8<kVnni>(KernelTable& table) noexcept {
  table.attend_int8 = Attend;
}

}  // namespace hearth
