// SPDX-License-Identifier: Apache-2.0
// Attention on AVX-512: one vector holds a dimension of a block's sixteen keys, so that scores of
// several heads grow side by side from one load; values are weighed for eight heads at a time.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "kv/layout.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/avx512_math.inl"

// Always inline: g++ 12 takes it for a function without effect and drops its calls.
[[gnu::always_inline]] inline void Prefetch(const void* at) {
  _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
}

// One KV head of one block.
struct Head {
  const int16_t *k, *v;
  const float *k_scale, *v_scale;
};
inline Head HeadOf(const AttendArgs& a, int block, int kv_head) {
  const uint8_t* at = a.pool + int64_t{a.table[block]} * a.block_bytes + a.layer_offset +
                      kv_head * KvHeadBytes(a.d_head);
  const auto* codes = reinterpret_cast<const int16_t*>(at);
  const auto* scales = reinterpret_cast<const float*>(codes + 2 * kBlockTokens * a.d_head);
  return {codes, codes + kBlockTokens * a.d_head, scales, scales + kBlockTokens};
}

constexpr int kSpanBlocks = kSpan / kBlockTokens;

inline __m512 Widened(const int16_t* codes) {
  const __m256i sixteen = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(sixteen));
}

// The group's work on one token and one span, and what is kept between spans. Vectors of values
// are padded to whole registers.
struct Work {
  float* scores;  // [group, kSpan], then the weights
  float* value;   // [group, padded] of this span
  float* top;     // [tokens, group] of all spans so far
  float* weight;  // [tokens, group]
  float* all;     // [tokens, group, padded]
  int group, padded, tokens;
};
Work WorkIn(const AttendArgs& a) {
  Work w{};
  w.group = a.n_heads / a.n_kv_heads;
  w.padded = (a.d_head + 15) / 16 * 16;
  w.scores = a.scratch;
  w.value = w.scores + w.group * kSpan;
  w.top = w.value + w.group * w.padded;
  const auto left = static_cast<int>(kAttendScratch) - w.group * (kSpan + w.padded);
  w.tokens = left / (w.group * (w.padded + 2));
  if (w.tokens > a.count) w.tokens = a.count;
  w.weight = w.top + w.tokens * w.group;
  w.all = w.weight + w.tokens * w.group;
  return w;
}

// Scores of kHeads heads for kBlocks blocks; lanes nobody may see are computed and not used.
// Meanwhile the next keys and these values are asked for.
template <int kHeads, int kBlocks>
void Scores(const AttendArgs& a, const float* q, const Head* heads, float* scores) {
  __m512 sum[kHeads][kBlocks];
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[h][b] = _mm512_setzero_ps();
  }
  for (int d = 0; d < a.d_head; ++d) {
    __m512 k[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      k[b] = Widened(heads[b].k + d * kBlockTokens);
      // A row of keys is half a line: even rows fetch keys, odd ones values.
      Prefetch(d % 2 == 0 ? heads[b + kBlocks].k + d * kBlockTokens
                          : heads[b].v + d * kBlockTokens);
    }
#pragma GCC unroll 8
    for (int h = 0; h < kHeads; ++h) {
      const __m512 query = _mm512_set1_ps(q[h * a.d_head + d]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sum[h][b] = _mm512_fmadd_ps(query, k[b], sum[h][b]);
    }
  }
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(heads[b].k_scale), _mm512_set1_ps(a.scale));
#pragma GCC unroll 8
    for (int h = 0; h < kHeads; ++h) {
      _mm512_storeu_ps(scores + h * kSpan + b * kBlockTokens, _mm512_mul_ps(sum[h][b], scale));
    }
  }
}

// The lanes of a block that lie in positions [begin, end).
inline __mmask16 Visible(int block, int begin, int end) {
  const int first = begin - block * kBlockTokens, last = end - block * kBlockTokens;
  const auto from = first > 0 ? static_cast<__mmask16>(~FirstLanes(first)) : __mmask16{0xffff};
  return static_cast<__mmask16>(from & FirstLanes(last));
}

// Scores of one head to weights, each already times its value's scale. Returns top and sum.
struct Sums {
  float top, weight;
};
Sums Weigh(const Head* heads, int block_begin, int begin, int end, float* scores) {
  const int num_blocks = (end + kBlockTokens - 1) / kBlockTokens - block_begin;
  const __m512 lowest = _mm512_set1_ps(FloatOf(0xff800000u));
  __m512 top = lowest;
  for (int b = 0; b < num_blocks; ++b) {
    const __mmask16 seen = Visible(block_begin + b, begin, end);
    // A NaN may be lost here; its own weight brings it back.
    top = _mm512_max_ps(top, _mm512_mask_loadu_ps(lowest, seen, scores + b * kBlockTokens));
  }
  Sums sums{_mm512_reduce_max_ps(top), 0.0f};
  const __m512 highest = _mm512_set1_ps(sums.top);
  __m512 weight = _mm512_setzero_ps();
  for (int b = 0; b < num_blocks; ++b) {
    const __mmask16 seen = Visible(block_begin + b, begin, end);
    const __m512 score = _mm512_maskz_loadu_ps(seen, scores + b * kBlockTokens);
    const __m512 part = Exp16(_mm512_sub_ps(score, highest));
    weight = _mm512_mask_add_ps(weight, seen, weight, part);
    _mm512_storeu_ps(scores + b * kBlockTokens,
                     _mm512_mul_ps(part, _mm512_loadu_ps(heads[b].v_scale)));
  }
  sums.weight = Join16(weight);
  return sums;
}

// Adds up the values of positions [begin, end) of one span: kHeads heads, kVectors * 16 dimensions.
// Meanwhile the keys of the next span, kSpanBlocks on, are asked for: as many bytes, or memory
// would rest while values are added up.
template <int kHeads, int kVectors>
void Values(const AttendArgs& a, const Head* heads, int block_begin, int begin, int end,
            const float* weights, int first_dim, int padded, float* value) {
  __m512 sum[kHeads][kVectors];
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) sum[h][i] = _mm512_setzero_ps();
  }
  const int base = block_begin * kBlockTokens;
  for (int j = begin; j < end; ++j) {
    const int block = (j - base) / kBlockTokens, at = j % kBlockTokens * a.d_head + first_dim;
    const int16_t* row = heads[block].v + at;
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; i += 2) Prefetch(heads[block + kSpanBlocks].k + at + i * 16);
    __m512 v[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) v[i] = Widened(row + i * 16);
#pragma GCC unroll 8
    for (int h = 0; h < kHeads; ++h) {
      const __m512 weight = _mm512_set1_ps(weights[h * kSpan + j - base]);
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) sum[h][i] = _mm512_fmadd_ps(weight, v[i], sum[h][i]);
    }
  }
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      _mm512_storeu_ps(value + h * padded + first_dim + i * 16, sum[h][i]);
    }
  }
}

// One span of one token for kHeads of the group's heads, from `first` on.
template <int kHeads>
void SpanOfHeads(const AttendArgs& a, const Work& w, const float* q, const Head* heads,
                 int block_begin, int begin, int end, int first, Sums* sums) {
  constexpr int kWide = kHeads >= 4 ? 2 : 4;
  const int num_blocks = (end + kBlockTokens - 1) / kBlockTokens - block_begin;
  const float* queries = q + first * a.d_head;
  float* scores = w.scores + first * kSpan;
  int b = 0;
  for (; b + kWide <= num_blocks; b += kWide) {
    Scores<kHeads, kWide>(a, queries, heads + b, scores + b * kBlockTokens);
  }
  for (; b < num_blocks; ++b) {
    Scores<kHeads, 1>(a, queries, heads + b, scores + b * kBlockTokens);
  }
  for (int h = 0; h < kHeads; ++h) {
    sums[first + h] = Weigh(heads, block_begin, begin, end, scores + h * kSpan);
  }
  float* value = w.value + first * w.padded;
  constexpr int kVectors = kHeads >= 8 ? 2 : 4;
  int d = 0;
  for (; d + kVectors * 16 <= w.padded; d += kVectors * 16) {
    Values<kHeads, kVectors>(a, heads, block_begin, begin, end, scores, d, w.padded, value);
  }
  for (; d < w.padded; d += 16) {
    Values<kHeads, 1>(a, heads, block_begin, begin, end, scores, d, w.padded, value);
  }
}

void Merge(const Work& w, int slot, const Sums& span, const float* value) {
  const float before = w.top[slot];
  const float top = span.top <= before ? before : span.top;
  const float old_share = Exp(before - top), new_share = Exp(span.top - top);
  w.top[slot] = top;
  w.weight[slot] = FusedMulAdd(w.weight[slot], old_share, span.weight * new_share);
  float* all = w.all + slot * w.padded;
  const __m512 old16 = _mm512_set1_ps(old_share), new16 = _mm512_set1_ps(new_share);
  for (int d = 0; d < w.padded; d += 16) {
    const __m512 added = _mm512_mul_ps(_mm512_loadu_ps(value + d), new16);
    _mm512_storeu_ps(all + d, _mm512_fmadd_ps(_mm512_loadu_ps(all + d), old16, added));
  }
}

void SpanOfToken(const AttendArgs& a, const Work& w, const Head* heads, int block_begin, int t,
                 int slot, int kv_head, int begin, int end) {
  const float* q = a.q + t * a.q_stride + int64_t{kv_head} * w.group * a.d_head;
  Sums sums[kMaxGroup];
  int h = 0;
  for (; h + 8 <= w.group; h += 8) {
    SpanOfHeads<8>(a, w, q, heads, block_begin, begin, end, h, sums);
  }
  for (; h + 4 <= w.group; h += 4) {
    SpanOfHeads<4>(a, w, q, heads, block_begin, begin, end, h, sums);
  }
  for (; h + 2 <= w.group; h += 2) {
    SpanOfHeads<2>(a, w, q, heads, block_begin, begin, end, h, sums);
  }
  for (; h < w.group; ++h) SpanOfHeads<1>(a, w, q, heads, block_begin, begin, end, h, sums);
  for (h = 0; h < w.group; ++h) Merge(w, slot + h, sums[h], w.value + h * w.padded);
}

inline int FirstVisible(const AttendArgs& a, int position) {
  return a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
}

// Tokens [first, first + w.tokens): span by span, so that a span's keys and values are read from
// memory once for all of them.
void AttendTokens(const AttendArgs& a, const Work& w, int first, int count, int kv_head) {
  for (int i = 0; i < count * w.group; ++i) {
    const int head = kv_head * w.group + i % w.group;
    w.top[i] = a.sinks != nullptr ? a.sinks[head] : FloatOf(0xff800000u);
    w.weight[i] = a.sinks != nullptr ? 1.0f : 0.0f;
  }
  for (int i = 0; i < count * w.group * w.padded; ++i) w.all[i] = 0.0f;
  const int last = a.first_position + first + count - 1;
  const int start = FirstVisible(a, a.first_position + first);
  for (int s = start / kSpan; s * kSpan <= last; ++s) {
    // The blocks of this span that any of the tokens sees; the next span's are for prefetching.
    const int block_begin = s * kSpan > start ? s * kSpanBlocks : start / kBlockTokens;
    const int block_end = (s + 1) * kSpan <= last ? (s + 1) * kSpanBlocks : last / kBlockTokens + 1;
    Head heads[2 * kSpanBlocks];
    for (int b = block_begin; b < block_end + kSpanBlocks; ++b) {
      const int known = b <= last / kBlockTokens ? b : last / kBlockTokens;
      heads[b - block_begin] = HeadOf(a, known, kv_head);
    }
    for (int i = 0; i < count; ++i) {
      const int position = a.first_position + first + i;
      const int visible = FirstVisible(a, position);
      const int begin = s * kSpan > visible ? s * kSpan : visible;
      const int end = (s + 1) * kSpan <= position ? (s + 1) * kSpan : position + 1;
      if (begin >= end) continue;
      const int block = begin / kBlockTokens;
      SpanOfToken(a, w, heads + (block - block_begin), block, first + i, i * w.group, kv_head,
                  begin, end);
    }
  }
  for (int i = 0; i < count * w.group; ++i) {
    const __m512 inverse = _mm512_set1_ps(1.0f / w.weight[i]);
    float* out = a.out + (first + i / w.group) * a.q_stride +
                 (int64_t{kv_head} * w.group + i % w.group) * a.d_head;
    for (int d = 0; d < a.d_head; d += 16) {
      _mm512_mask_storeu_ps(out + d, FirstLanes(a.d_head - d),
                            _mm512_mul_ps(_mm512_loadu_ps(w.all + i * w.padded + d), inverse));
    }
  }
}

void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  const Work w = WorkIn(a);
  for (int kv_head = kv_begin; kv_head < kv_end; ++kv_head) {
    for (int t = 0; t < a.count; t += w.tokens) {
      const int count = a.count - t < w.tokens ? a.count - t : w.tokens;
      AttendTokens(a, w, t, count, kv_head);
    }
  }
}

}  // namespace

AttendKernel Avx512Attend() { return Attend; }

}  // namespace hearth
