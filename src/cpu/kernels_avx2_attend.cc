// SPDX-License-Identifier: Apache-2.0
// Attention on AVX2: a block's sixteen keys are two vectors, shared by up to four heads; values are
// weighed for four heads and sixteen dimensions at a time.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/attend_parts.inl"
#include "cpu/avx2_math.inl"

#include "cpu/avx2_attend_heads.inl"

inline __m256 Widened(const int16_t* codes) {
  const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(eight));
}

// Scores of kHeads heads, block by block; lanes nobody may see are computed and not used.
template <int kHeads>
void Scores(const AttendArgs& a, const Span<int16_t>& span, const float* q, float* scores) {
  for (int b = 0; b < span.num_blocks(); ++b) {
    const Head<int16_t>& head = span.heads[b];
    __m256 sum[kHeads][2];
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) sum[h][0] = sum[h][1] = _mm256_setzero_ps();
    for (int d = 0; d < a.d_head; ++d) {
      const __m256 k0 = Widened(head.k + d * kBlockTokens);
      const __m256 k1 = Widened(head.k + d * kBlockTokens + 8);
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) {
        const __m256 query = _mm256_set1_ps(q[h * a.d_head + d]);
        sum[h][0] = _mm256_fmadd_ps(query, k0, sum[h][0]);
        sum[h][1] = _mm256_fmadd_ps(query, k1, sum[h][1]);
      }
    }
    for (int half = 0; half < 2; ++half) {
      const __m256 scale =
          _mm256_mul_ps(_mm256_loadu_ps(head.k_scale + half * 8), _mm256_set1_ps(a.scale));
#pragma GCC unroll 4
      for (int h = 0; h < kHeads; ++h) {
        _mm256_storeu_ps(scores + h * kSpan + b * kBlockTokens + half * 8,
                         _mm256_mul_ps(sum[h][half], scale));
      }
    }
  }
}

// Sixteen dimensions of kHeads heads, or the last eight.
template <int kHeads, int kVectors>
void Values(const AttendArgs& a, const Span<int16_t>& span, const float* weights, int dim,
            float* value) {
  __m256 sum[kHeads][kVectors];
  for (auto& head : sum) {
    for (__m256& vector : head) vector = _mm256_setzero_ps();
  }
  const int base = span.block_begin * kBlockTokens;
  for (int j = span.begin; j < span.end; ++j) {
    const int16_t* row =
        span.heads[(j - base) / kBlockTokens].v + j % kBlockTokens * a.d_head + dim;
    __m256 v[kVectors];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) v[i] = Widened(row + i * 8);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m256 weight = _mm256_set1_ps(weights[h * kSpan + j - base]);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) sum[h][i] = _mm256_fmadd_ps(weight, v[i], sum[h][i]);
    }
  }
  for (int h = 0; h < kHeads; ++h) {
    for (int i = 0; i < kVectors; ++i) {
      _mm256_storeu_ps(value + h * kMaxHeadDim + dim + i * 8, sum[h][i]);
    }
  }
}

template <int kHeads>
void AttendHeads(const AttendArgs& a, int t, int kv_head, int head) {
  const float* q = a.q + t * a.q_stride + int64_t{head} * a.d_head;
  EachSpan<int16_t, kHeads>(
      a, t, kv_head, head, [&](const Span<int16_t>& span, float* scores, Sums* sums, float* value) {
        Scores<kHeads>(a, span, q, scores);
        for (int h = 0; h < kHeads; ++h) sums[h] = Weigh(span, scores + h * kSpan);
        int d = 0;
        for (; d + 16 <= a.d_head; d += 16) Values<kHeads, 2>(a, span, scores, d, value);
        for (; d < a.d_head; d += 8) Values<kHeads, 1>(a, span, scores, d, value);
      });
}

void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  EachHeads(a, kv_begin, kv_end, AttendHeads<4>, AttendHeads<1>);
}

void MergeSpans(const AttendArgs& a, int kv_begin, int kv_end) {
  const int group = a.n_heads / a.n_kv_heads;
  for (int t = 0; t < a.count; ++t) {
    const SpanRange spans = SpansOf(a, t, 1);
    for (int head = kv_begin * group; head < kv_end * group; ++head) {
      Sums all = StartOf(a, head, a.scratch);
      for (int s = spans.begin; s < spans.end; ++s) {
        const SpanPart part = PartOf(a, s, head / group, t * group + head % group);
        Merge({*part.top, *part.weight}, part.value, a.d_head, all, a.scratch);
      }
      Finish(a, t, head, all, a.scratch);
    }
  }
}

}  // namespace

void AddAvx2Attend(KernelTable& table) noexcept {
  table.attend = Attend;
  table.merge_spans = MergeSpans;
}

}  // namespace hearth
