// SPDX-License-Identifier: Apache-2.0
// Attention on AVX-512. A row is one query head of one token; the rows of a KV head are taken in
// tiles of eight, whose scores and values grow in registers side by side: one vector holds a
// dimension of a block's sixteen keys, or sixteen dimensions of a value. With few rows, codes are
// widened on the way; with many, once into a buffer that stays in the first-level cache.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "kv/layout.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/attend_parts.inl"
#include "cpu/avx512_math.inl"

constexpr int kSpanBlocks = kSpan / kBlockTokens;
constexpr int kTile = 8;      // rows
constexpr int kBuffered = 8;  // blocks that are widened together
constexpr int kFewRows = 16;  // up to here each tile widens for itself
constexpr int kLine = 64;     // bytes
// Scores of a row, not a power of two apart: a tile's rows would share a few sets of the cache.
constexpr int kScoreStride = kSpan + kBlockTokens;

// Always inline: g++ 12 takes it for a function without effect and drops its calls.
[[gnu::always_inline]] inline void Prefetch(const void* at) {
  _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
}
// Into the second level only: half a span of keys or values would fill the first.
[[gnu::always_inline]] inline void PrefetchFar(const void* at) {
  _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T1);
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

inline __m512 Widened(const int16_t* codes) {
  const __m256i sixteen = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(sixteen));
}
inline __m512 Widened(const float* values) { return _mm512_loadu_ps(values); }

// Rows [0, num_rows) of one KV head: their queries, and what is kept between and within spans.
// Vectors of values are padded to whole registers.
struct Work {
  float* widened;            // kBuffered blocks of keys or values
  float *k_scale, *v_scale;  // [kSpan]: the keys' already times the attention's scale
  float* scores;             // [rows, kScoreStride], then the weights
  float *value, *all;        // [rows, padded]: of this span, of all so far
  float *span_top, *span_weight, *top, *weight;  // [rows]
  const float* q[kAttendRows];
  int first_position;  // of row 0
  int group, num_rows, padded, d_head, window;
};
void Place(const AttendArgs& a, Work& w) {
  w.group = a.n_heads / a.n_kv_heads;
  w.padded = (a.d_head + 15) / 16 * 16;
  w.d_head = a.d_head;
  w.window = a.window;
  w.widened = a.scratch;
  w.k_scale = w.widened + kBuffered * kBlockTokens * w.padded;
  w.v_scale = w.k_scale + kSpan;
  w.scores = w.v_scale + kSpan;
  w.value = w.scores + kAttendRows * kScoreStride;
  w.all = w.value + kAttendRows * w.padded;
  w.span_top = w.all + kAttendRows * w.padded;
  w.span_weight = w.span_top + kAttendRows;
  w.top = w.span_weight + kAttendRows;
  w.weight = w.top + kAttendRows;
}
// Where a span's results go when others merge them, and are found then.
void TakePart(const AttendArgs& a, int span, int kv_head, int first_token, Work& w) {
  const SpanPart part = PartOf(a, span, kv_head, first_token * w.group);
  w.span_top = part.top;
  w.span_weight = part.weight;
  w.value = part.value;
}
static_assert(kAttendScratch >= kBuffered * kBlockTokens * kMaxHeadDim + 2 * kSpan +
                                    kAttendRows * (kScoreStride + 2 * kMaxHeadDim + 4));

// Positions of a span, counted from its first block's first.
struct Seen {
  int begin, end;
};
// The blocks of a span that any row sees, and the next span's first ones for prefetching.
struct Span {
  Head heads[2 * kSpanBlocks];
  int base;  // position of the first block's first lane
  int end;   // absolute
  int num_blocks;
};

// What rows [first, last] of the span are seen by any of them; tokens ascend with rows.
inline Seen SeenBy(const Work& w, const Span& span, int first, int last) {
  const int early = w.first_position + first / w.group, late = w.first_position + last / w.group;
  const int visible = w.window > 0 ? early - w.window + 1 : 0;
  const int begin = visible > span.base ? visible : span.base;
  const int end = late + 1 < span.end ? late + 1 : span.end;
  return {begin - span.base, end > begin ? end - span.base : begin - span.base};
}

// Keys or values as the loops below read them: codes of each block, or kBuffered blocks widened.
template <class T>
struct Source {
  const T* at[kSpanBlocks];
};

// What to ask memory for while scores are computed: a line of each per dimension.
struct Wanted {
  const int16_t *k, *v;
};

// Scores of kRows rows for kBlocks blocks; lanes nobody may see are computed and not used.
template <int kRows, int kBlocks, class T>
void Scores(const float* const* q, const T* const* keys, int64_t key_stride, int d_head,
            const Wanted* wanted, const float* scale, float* scores) {
  __m512 sum[kRows][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[r][b] = _mm512_setzero_ps();
  }
#pragma GCC unroll 4
  for (int d = 0; d < d_head; ++d) {
    __m512 k[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      k[b] = Widened(keys[b] + d * key_stride);
      // A row of keys is half a line: even rows fetch keys, odd ones values.
      if constexpr (sizeof(T) == 2) {
#if defined(ASK_V_T1) || defined(SPAN_AHEAD)
        if (d % 2 == 0)
          Prefetch(wanted[b].k + d * kBlockTokens);
        else
          PrefetchFar(wanted[b].v + d * kBlockTokens);
#else
        Prefetch((d % 2 == 0 ? wanted[b].k : wanted[b].v) + d * kBlockTokens);
#endif
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 query = _mm512_set1_ps(q[r][d]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sum[r][b] = _mm512_fmadd_ps(query, k[b], sum[r][b]);
    }
  }
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const __m512 scale16 = _mm512_loadu_ps(scale + b * kBlockTokens);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      _mm512_storeu_ps(scores + r * kScoreStride + b * kBlockTokens,
                       _mm512_mul_ps(sum[r][b], scale16));
    }
  }
}

// The lanes of a block that lie in [seen.begin, seen.end).
inline __mmask16 Visible(int block, const Seen& seen) {
  const int first = seen.begin - block * kBlockTokens, last = seen.end - block * kBlockTokens;
  if (last <= 0 || first >= kBlockTokens) return 0;
  const auto from = first > 0 ? static_cast<__mmask16>(~FirstLanes(first)) : __mmask16{0xffff};
  return static_cast<__mmask16>(from & FirstLanes(last));
}

inline __m512 LowestScores() { return _mm512_set1_ps(FloatOf(0xff800000u)); }

// The largest score of a row. A NaN may be lost here; its own weight brings it back.
template <bool kMasked>
float Top(const float* scores, int block_begin, int block_end, const Seen& seen) {
  const __m512 lowest = LowestScores();
  __m512 top = lowest;
  for (int b = block_begin; b < block_end; ++b) {
    const __mmask16 lanes = kMasked ? Visible(b, seen) : __mmask16{0xffff};
    top = _mm512_max_ps(top, _mm512_mask_loadu_ps(lowest, lanes, scores + b * kBlockTokens));
  }
  return _mm512_reduce_max_ps(top);
}

// canon.inl's Exp where no argument is above 0. The low bits of x / ln 2 + kRound are the power of
// two; of a NaN they are anything, and whatever power that makes leaves the NaN as it is.
inline __m512 ExpOfNonPositive(__m512 x) {
  const __mmask16 not_tiny = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpLow), _CMP_NLT_UQ);
  const __m512 round = _mm512_set1_ps(kRound);
  const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(kLog2E), round);
  const __m512 n = _mm512_sub_ps(shifted, round);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2High), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Low), r);
  __m512 p = _mm512_set1_ps(kExpC[6]);
#pragma GCC unroll 6
  for (int i = 5; i >= 0; --i) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC[i]));
  const __m512i power = _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23),
                                         _mm512_set1_epi32(127 << 23));
  return _mm512_maskz_mul_ps(not_tiny, p, _mm512_castsi512_ps(power));
}

// Scores of kRows rows, kScoreStride apart, to weights, each already times its value's scale;
// leaves their sums without it in `weight`. Hidden lanes get weight zero, which a sum of values
// cannot tell from nothing: it starts from +0 and no product is small enough to round to -0.
template <int kRows, bool kMasked>
void Weigh(const float* top, const float* v_scale, int block_begin, int block_end, const Seen& seen,
           float* scores, float* weight) {
  __m512 highest[kRows], sum[kRows];
  for (int r = 0; r < kRows; ++r) highest[r] = _mm512_set1_ps(top[r]), sum[r] = _mm512_setzero_ps();
  for (int b = block_begin; b < block_end; ++b) {
    const __mmask16 lanes = kMasked ? Visible(b, seen) : __mmask16{0xffff};
    const __m512 scale = _mm512_loadu_ps(v_scale + b * kBlockTokens);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      float* at = scores + r * kScoreStride + b * kBlockTokens;
      const __m512 part =
          ExpOfNonPositive(_mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, at), highest[r]));
      sum[r] = _mm512_mask_add_ps(sum[r], lanes, sum[r], part);
      _mm512_storeu_ps(at, _mm512_maskz_mul_ps(lanes, part, scale));
    }
  }
  for (int r = 0; r < kRows; ++r) weight[r] = Join16(sum[r]);
}

// Adds the values of positions [begin, end), counted from values[0]'s first, to what `value` holds:
// kRows rows, kVectors * 16 dimensions.
template <int kRows, int kVectors, class T>
void Values(const T* const* values, int64_t value_stride, const int16_t* const* wanted, int begin,
            int end, const float* weights, int padded, float* value) {
  // Widened values lie one after the other, codes block by block.
  constexpr int kStep = sizeof(T) == 2 ? kBlockTokens : kBuffered * kBlockTokens;
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sum[r][i] = _mm512_loadu_ps(value + r * padded + i * 16);
  }
#ifdef EVEN
  const bool even =
      (reinterpret_cast<uintptr_t>(wanted ? wanted[begin / kStep] : nullptr) & 64) == 0;
#endif
  for (int first = begin; first < end;) {
    const int block = first / kStep, last = (block + 1) * kStep < end ? (block + 1) * kStep : end;
    const int64_t skipped = (first - block * kStep) * value_stride;
    const T* row = values[block] + skipped;
    const int16_t* next = sizeof(T) == 2 ? wanted[block] + skipped : nullptr;
#pragma GCC unroll 2
    for (int j = first; j < last; ++j) {
      __m512 v[kVectors];
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        v[i] = Widened(row + i * 16);
        // As many bytes of the next keys, or memory would rest while values are added up.
        if constexpr (sizeof(T) == 2) {
#ifdef EVEN
          if (even && i % 2 == 0) PrefetchFar(next + i * 16);
#else
          if (i % 2 == 0) PrefetchFar(next + i * 16);
#endif
#if defined(NEAR_V) || defined(SPAN_AHEAD)
          if (i % 2 == 0) Prefetch(row + 8 * value_stride + i * 16);
#endif
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 weight = _mm512_set1_ps(weights[r * kScoreStride + j]);
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) sum[r][i] = _mm512_fmadd_ps(weight, v[i], sum[r][i]);
      }
      row += value_stride;
      if constexpr (sizeof(T) == 2) next += value_stride;
    }
    first = last;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) _mm512_storeu_ps(value + r * padded + i * 16, sum[r][i]);
  }
}

// Calls body.template operator()<kRows>(first row) for tiles that cover all rows.
template <class F>
void EachTile(int num_rows, F&& body) {
  int r = 0;
  for (; r + kTile <= num_rows; r += kTile) body.template operator()<kTile>(r);
  if (r + 4 <= num_rows) body.template operator()<4>(r), r += 4;
  if (r + 2 <= num_rows) body.template operator()<2>(r), r += 2;
  if (r < num_rows) body.template operator()<1>(r);
}

inline int RoundedUp(int position) { return (position + kBlockTokens - 1) / kBlockTokens; }

// --- Few rows: codes are widened by each tile
// -----------------------------------------------------

template <int kRows>
void ScoresOfFew(const Work& w, const Span& span, int row) {
  constexpr int kWide = kRows >= 4 ? 2 : 4;
  const Seen seen = SeenBy(w, span, row, row + kRows - 1);
  float* scores = w.scores + row * kScoreStride;
  const int end = RoundedUp(seen.end);
  int b = seen.begin / kBlockTokens;
  const auto score = [&]<int kBlocks>() {
    const int16_t* keys[kBlocks];
    Wanted wanted[kBlocks];
    for (int i = 0; i < kBlocks; ++i) {
      keys[i] = span.heads[b + i].k;
#ifdef SPAN_AHEAD
      wanted[i] = {span.heads[b + i + kBlocks].k, span.heads[b + i + kSpanBlocks].k};
#else
      wanted[i] = {span.heads[b + i + kBlocks].k, span.heads[b + i].v};
#endif
      Prefetch(span.heads[b + i + kSpanBlocks].k_scale);
      Prefetch(span.heads[b + i + kSpanBlocks].v_scale);
    }
    Scores<kRows, kBlocks>(w.q + row, keys, kBlockTokens, w.d_head, wanted,
                           w.k_scale + b * kBlockTokens, scores + b * kBlockTokens);
  };
  for (; b + kWide <= end; b += kWide) score.template operator()<kWide>();
  for (; b < end; ++b) score.template operator()<1>();
}

template <int kRows>
void ValuesOfFew(const Work& w, const Span& span, int row) {
  const Seen seen = SeenBy(w, span, row, row + kRows - 1);
  const int16_t* values[kSpanBlocks];
  const int16_t* wanted[kSpanBlocks];
  for (int b = 0; b < span.num_blocks; ++b) {
    values[b] = span.heads[b].v;
#ifdef SPAN_AHEAD
    wanted[b] = span.heads[b + kSpanBlocks].v;
#else
    wanted[b] = span.heads[b + kSpanBlocks].k;
#endif
  }
  constexpr int kVectors = kRows >= kTile ? 2 : 4;
  const auto add = [&]<int kWide>(int dim) {
    const int16_t *from[kSpanBlocks], *next[kSpanBlocks];
    for (int b = 0; b < span.num_blocks; ++b) from[b] = values[b] + dim, next[b] = wanted[b] + dim;
    Values<kRows, kWide>(from, w.d_head, next, seen.begin, seen.end, w.scores + row * kScoreStride,
                         w.padded, w.value + row * w.padded + dim);
  };
  int d = 0;
  for (; d + kVectors * 16 <= w.padded; d += kVectors * 16) add.template operator()<kVectors>(d);
  for (; d < w.padded; d += 16) add.template operator()<1>(d);
}

// --- Many rows: codes are widened once for all tiles ---------------------------------------------

// A share of the lines that come next, so that asking is spread over the tiles: the keys and
// scales of what comes next and these blocks' values.
void AskForShare(const Span& span, int block, int count, int d_head, int share, int num_shares) {
  const int code_lines = kBlockTokens * d_head * 2 / kLine, lines = 2 * code_lines + 2;
  const int begin = lines * share / num_shares, end = lines * (share + 1) / num_shares;
  for (int i = 0; i < count; ++i) {
    // Keys are widened kBuffered blocks at a time.
    const Head &now = span.heads[block + i], &next = span.heads[block + kBuffered + i];
    const Head& later = span.heads[block + kSpanBlocks + i];  // scales are read span by span
    const auto* k = reinterpret_cast<const char*>(next.k);
    const auto* v = reinterpret_cast<const char*>(now.v);
    for (int line = begin; line < end; ++line) {
      if (line < code_lines) {
        Prefetch(k + line * kLine);
      } else if (line < 2 * code_lines) {
        Prefetch(v + (line - code_lines) * kLine);
      } else {
        Prefetch(line % 2 == 0 ? later.k_scale : later.v_scale);
      }
    }
  }
}

void ScoresOfMany(const Work& w, const Span& span, int block, int count) {
  for (int i = 0; i < count; ++i) {
    float* to = w.widened + i * kBlockTokens * w.d_head;
    for (int d = 0; d < w.d_head; ++d) {
      _mm512_storeu_ps(to + d * kBlockTokens, Widened(span.heads[block + i].k + d * kBlockTokens));
    }
  }
  const auto score = [&]<int kBlocks>(int i) {
    const int first = (block + i) * kBlockTokens;
    const float* keys[kBlocks];
    for (int b = 0; b < kBlocks; ++b) keys[b] = w.widened + (i + b) * kBlockTokens * w.d_head;
    EachTile(w.num_rows, [&]<int kRows>(int row) {
      AskForShare(span, block + i, kBlocks, w.d_head, row / kTile,
                  (w.num_rows + kTile - 1) / kTile);
      const Seen seen = SeenBy(w, span, row, row + kRows - 1);
      if (seen.end <= first || seen.begin >= first + kBlocks * kBlockTokens) return;
      Scores<kRows, kBlocks>(w.q + row, keys, kBlockTokens, w.d_head, nullptr, w.k_scale + first,
                             w.scores + row * kScoreStride + first);
    });
  };
  int i = 0;
  for (; i + 2 <= count; i += 2) score.template operator()<2>(i);
  if (i < count) score.template operator()<1>(i);
}

void ValuesOfMany(const Work& w, const Span& span, int block, int count) {
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < kBlockTokens; ++j) {
      for (int d = 0; d < w.padded; d += 16) {
        _mm512_storeu_ps(w.widened + (i * kBlockTokens + j) * w.padded + d,
                         Widened(span.heads[block + i].v + j * w.d_head + d));
      }
    }
  }
  const int base = block * kBlockTokens;
  // Dimensions outside, so that a tile's share of the values stays in the first-level cache.
  const auto add = [&]<int kVectors>(int dim) {
    const float* values = w.widened + dim;
    EachTile(w.num_rows, [&]<int kRows>(int row) {
      const Seen seen = SeenBy(w, span, row, row + kRows - 1);
      const int begin = seen.begin > base ? seen.begin - base : 0;
      const int left = count * kBlockTokens;
      const int end = seen.end - base < left ? seen.end - base : left;
      if (begin >= end) return;
      Values<kRows, kVectors>(&values, w.padded, nullptr, begin, end,
                              w.scores + row * kScoreStride + base, w.padded,
                              w.value + row * w.padded + dim);
    });
  };
  int d = 0;
  for (; d + 32 <= w.padded; d += 32) add.template operator()<2>(d);
  if (d < w.padded) add.template operator()<1>(d);
}

// --- One span ------------------------------------------------------------------------------------

void WeighRows(const Work& w, const Span& span) {
  EachTile(w.num_rows, [&]<int kRows>(int row) {
    // A tile's values are added up together, so each row has a weight wherever the tile sees.
    const Seen tile = SeenBy(w, span, row, row + kRows - 1);
    const int begin = tile.begin / kBlockTokens, end = RoundedUp(tile.end);
    float *scores = w.scores + row * kScoreStride, *top = w.span_top + row;
    const Seen first = SeenBy(w, span, row, row),
               last = SeenBy(w, span, row + kRows - 1, row + kRows - 1);
    if (last.begin <= begin * kBlockTokens && first.end >= end * kBlockTokens) {
      for (int r = 0; r < kRows; ++r) {
        top[r] = Top<false>(scores + r * kScoreStride, begin, end, tile);
      }
      constexpr int kTogether = kRows < 4 ? kRows : 4;
      for (int r = 0; r < kRows; r += kTogether) {
        Weigh<kTogether, false>(top + r, w.v_scale, begin, end, tile, scores + r * kScoreStride,
                                w.span_weight + row + r);
      }
      return;
    }
    for (int r = 0; r < kRows; ++r) {
      const Seen seen = SeenBy(w, span, row + r, row + r);
      top[r] = Top<true>(scores + r * kScoreStride, begin, end, seen);
      Weigh<1, true>(top + r, w.v_scale, begin, end, seen, scores + r * kScoreStride,
                     w.span_weight + row + r);
    }
  });
}

// Sixteen rows at a time, but a row that sees nothing of the span stays as it is.
void MergeSpan(const Work& w, const Span& span) {
  for (int first = 0; first < w.num_rows; first += 16) {
    const int count = w.num_rows - first < 16 ? w.num_rows - first : 16;
    __mmask16 rows = 0;
    for (int i = 0; i < count; ++i) {
      const Seen seen = SeenBy(w, span, first + i, first + i);
      if (seen.begin < seen.end) rows = static_cast<__mmask16>(rows | 1u << i);
    }
    const __m512 before = _mm512_maskz_loadu_ps(rows, w.top + first);
    const __m512 now = _mm512_maskz_loadu_ps(rows, w.span_top + first);
    const __mmask16 stays = _mm512_cmp_ps_mask(now, before, _CMP_LE_OQ);
    const __m512 top = _mm512_mask_blend_ps(stays, now, before);
    alignas(64) float old_share[16], new_share[16];
    const __m512 old16 = ExpOfNonPositive(_mm512_sub_ps(before, top));
    const __m512 new16 = ExpOfNonPositive(_mm512_sub_ps(now, top));
    _mm512_store_ps(old_share, old16);
    _mm512_store_ps(new_share, new16);
    const __m512 added = _mm512_mul_ps(_mm512_maskz_loadu_ps(rows, w.span_weight + first), new16);
    const __m512 weight =
        _mm512_fmadd_ps(_mm512_maskz_loadu_ps(rows, w.weight + first), old16, added);
    _mm512_mask_storeu_ps(w.top + first, rows, top);
    _mm512_mask_storeu_ps(w.weight + first, rows, weight);
    for (int i = 0; i < count; ++i) {
      if ((rows >> i & 1) == 0) continue;
      float *value = w.value + (first + i) * w.padded, *all = w.all + (first + i) * w.padded;
      const __m512 was = _mm512_set1_ps(old_share[i]), is = _mm512_set1_ps(new_share[i]);
      for (int d = 0; d < w.padded; d += 16) {
        const __m512 part = _mm512_mul_ps(_mm512_loadu_ps(value + d), is);
        _mm512_storeu_ps(all + d, _mm512_fmadd_ps(_mm512_loadu_ps(all + d), was, part));
      }
    }
  }
}

void AddSpan(const AttendArgs& a, const Work& w, const Span& span) {
  for (int b = 0; b < span.num_blocks; ++b) {
    const __m512 scale =
        _mm512_mul_ps(_mm512_loadu_ps(span.heads[b].k_scale), _mm512_set1_ps(a.scale));
    _mm512_storeu_ps(w.k_scale + b * kBlockTokens, scale);
    _mm512_storeu_ps(w.v_scale + b * kBlockTokens, _mm512_loadu_ps(span.heads[b].v_scale));
  }
  for (int i = 0; i < w.num_rows * w.padded; i += 16) {
    _mm512_storeu_ps(w.value + i, _mm512_setzero_ps());
  }
  if (w.num_rows <= kFewRows) {
    EachTile(w.num_rows, [&]<int kRows>(int row) { ScoresOfFew<kRows>(w, span, row); });
    WeighRows(w, span);
    EachTile(w.num_rows, [&]<int kRows>(int row) { ValuesOfFew<kRows>(w, span, row); });
  } else {
    const auto each = [&](auto body) {
      for (int b = 0; b < span.num_blocks; b += kBuffered) {
        body(w, span, b, span.num_blocks - b < kBuffered ? span.num_blocks - b : kBuffered);
      }
    };
    each(ScoresOfMany);
    WeighRows(w, span);
    each(ValuesOfMany);
  }
}

// --- All spans -----------------------------------------------------------------------------------

// Rows of tokens [first, first + count), which start from the sink, a score of weight one and no
// value, or from nothing.
void StartRows(const AttendArgs& a, int first, int count, int kv_head, Work& w) {
  w.num_rows = count * w.group;
  w.first_position = a.first_position + first;
  for (int r = 0; r < w.num_rows; ++r) {
    const int head = kv_head * w.group + r % w.group;
    w.q[r] = a.q + (first + r / w.group) * a.q_stride + int64_t{head} * a.d_head;
    w.top[r] = a.sinks != nullptr ? a.sinks[head] : FloatOf(0xff800000u);
    w.weight[r] = a.sinks != nullptr ? 1.0f : 0.0f;
  }
  for (int i = 0; i < w.num_rows * w.padded; ++i) w.all[i] = 0.0f;
}

void FinishRows(const AttendArgs& a, const Work& w) {
  for (int r = 0; r < w.num_rows; ++r) {
    const __m512 inverse = _mm512_set1_ps(1.0f / w.weight[r]);
    float* out = a.out + (w.q[r] - a.q);
    for (int d = 0; d < a.d_head; d += 16) {
      _mm512_mask_storeu_ps(out + d, FirstLanes(a.d_head - d),
                            _mm512_mul_ps(_mm512_loadu_ps(w.all + r * w.padded + d), inverse));
    }
  }
}

inline int LastPosition(const Work& w) { return w.first_position + (w.num_rows - 1) / w.group; }

// The blocks of span s that the rows see.
void FindSpan(const AttendArgs& a, const Work& w, int s, Span& span) {
  const int last = LastPosition(w), start = FirstVisible(a, w.first_position);
  const int block_begin = s * kSpan > start ? s * kSpanBlocks : start / kBlockTokens;
  const int block_end = (s + 1) * kSpan <= last ? (s + 1) * kSpanBlocks : last / kBlockTokens + 1;
  span.base = block_begin * kBlockTokens;
  span.end = (s + 1) * kSpan;
  span.num_blocks = block_end - block_begin;
}

// What is asked for beyond the last block is the start of the next KV head, which is likely to be
// taken next.
void FindHeads(const AttendArgs& a, const Work& w, int kv_head, Span& span) {
  const int next_head = kv_head + 1 < a.n_kv_heads ? kv_head + 1 : kv_head;
  const int last = LastPosition(w), start = FirstVisible(a, w.first_position);
  int block = span.base / kBlockTokens, head = kv_head;
  for (int i = 0; i < span.num_blocks + kSpanBlocks; ++i) {
    span.heads[i] = HeadOf(a, block, head);
    if (++block > last / kBlockTokens) block = start / kBlockTokens, head = next_head;
  }
}

// Span by span, so that its keys and values are read from memory once for all the rows.
void AttendRows(const AttendArgs& a, int first, int count, int kv_head, Work& w) {
  StartRows(a, first, count, kv_head, w);
  const SpanRange spans = SpansOf(a, first, count);
  for (int s = spans.begin; s < spans.end; ++s) {
    Span span;
    FindSpan(a, w, s, span);
    FindHeads(a, w, kv_head, span);
    if (a.parts != nullptr) {
      TakePart(a, s, kv_head, first, w);
      AddSpan(a, w, span);
    } else {
      AddSpan(a, w, span);
      MergeSpan(w, span);
    }
  }
  if (a.parts == nullptr) FinishRows(a, w);
}

void MergeRows(const AttendArgs& a, int first, int count, int kv_head, Work& w) {
  StartRows(a, first, count, kv_head, w);
  const SpanRange spans = SpansOf(a, first, count);
  for (int s = spans.begin; s < spans.end; ++s) {
    Span span;
    FindSpan(a, w, s, span);
    TakePart(a, s, kv_head, first, w);
    MergeSpan(w, span);
  }
  FinishRows(a, w);
}

using RowsKernel = void (*)(const AttendArgs& a, int first, int count, int kv_head, Work& w);
void EachRows(const AttendArgs& a, int kv_begin, int kv_end, RowsKernel kernel) {
  Work w;
  Place(a, w);
  const int tokens = kAttendRows / w.group;
  for (int kv_head = kv_begin; kv_head < kv_end; ++kv_head) {
    for (int t = 0; t < a.count; t += tokens) {
      kernel(a, t, a.count - t < tokens ? a.count - t : tokens, kv_head, w);
    }
  }
}

void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  EachRows(a, kv_begin, kv_end, AttendRows);
}
void MergeSpans(const AttendArgs& a, int kv_begin, int kv_end) {
  EachRows(a, kv_begin, kv_end, MergeRows);
}

}  // namespace

AttendKernels Avx512Attend() { return {Attend, MergeSpans}; }

}  // namespace hearth
