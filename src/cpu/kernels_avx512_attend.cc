// SPDX-License-Identifier: Apache-2.0
// Attention on AVX-512. A row is one query head of one token; the rows of a KV head are taken in
// tiles of eight, whose scores and values grow in registers side by side: one vector holds a
// dimension of a block's sixteen keys, or sixteen dimensions of a value. With few rows, codes are
// widened on the way; with many, once into a buffer that stays in the first-level cache.
#include <immintrin.h>

#include <cstdint>
#include <type_traits>

#include "cpu/kernels_parts.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/attend_parts.inl"
#include "cpu/avx512_math.inl"

#include "cpu/avx512_attend_tiles.inl"

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

// The blocks of a span that any row sees, and the next span's first ones for prefetching.
struct SpanPlace {
  int base;  // position of the first block's first lane
  int end;   // absolute
  int num_blocks;
};
template <class Code>
struct Span : SpanPlace {
  Head<Code> heads[2 * kSpanBlocks];
};

// What any of the rows [first, last] sees of the span, {0, 0} for nothing; tokens ascend with rows.
inline Seen SeenBy(const Work& w, const SpanPlace& span, int first, int last) {
  const int early = w.first_position + first / w.group, late = w.first_position + last / w.group;
  const int visible = w.window > 0 ? early - w.window + 1 : 0;
  const int begin = visible > span.base ? visible : span.base;
  const int end = late + 1 < span.end ? late + 1 : span.end;
  return begin < end ? Seen{begin - span.base, end - span.base} : Seen{0, 0};
}

inline int RoundedUp(int position) { return (position + kBlockTokens - 1) / kBlockTokens; }

// --- Few rows: codes are widened by each tile ----------------------------------------------------

// Memory is asked for what comes kAhead blocks later: first the keys of a span, then its values,
// then the next span's keys. Further ahead was slower.
template <class Code>
inline const Code* AheadOfKeys(const Span<Code>& span, int block) {
  const int then = block + kAhead;
  return then < span.num_blocks ? span.heads[then].k : span.heads[then - span.num_blocks].v;
}
template <class Code>
inline const Code* AheadOfValues(const Span<Code>& span, int block) {
  const int then = block + kAhead;
  return then < span.num_blocks ? span.heads[then].v : span.heads[then].k;
}

template <int kRows, class Code>
void ScoresOfFew(const Work& w, const Span<Code>& span, int row) {
  constexpr int kWide = kRows >= 4 ? 2 : 4;
  const Seen seen = SeenBy(w, span, row, row + kRows - 1);
  const int end = RoundedUp(seen.end);
  int b = seen.begin / kBlockTokens;
  const auto score = [&]<int kBlocks>() {
    const Code *keys[kBlocks], *wanted[kBlocks];
    for (int i = 0; i < kBlocks; ++i) {
      keys[i] = span.heads[b + i].k;
      wanted[i] = AheadOfKeys(span, b + i);
      Prefetch(span.heads[b + i + kSpanBlocks].k_scale);  // scales are read span by span
      Prefetch(span.heads[b + i + kSpanBlocks].v_scale);
    }
    Scores<kRows, kBlocks>(w.q + row, keys, kBlockTokens, w.d_head, wanted,
                           w.k_scale + b * kBlockTokens,
                           w.scores + row * kScoreStride + b * kBlockTokens);
  };
  for (; b + kWide <= end; b += kWide) score.template operator()<kWide>();
  for (; b < end; ++b) score.template operator()<1>();
}

template <int kRows, class Code>
void ValuesOfFew(const Work& w, const Span<Code>& span, int row) {
  const Seen seen = SeenBy(w, span, row, row + kRows - 1);
  constexpr int kVectors = kRows >= kTile ? 2 : 4;
  const int block_end = RoundedUp(seen.end);
  for (int first = seen.begin / kBlockTokens; first < block_end; first += kAhead) {
    const int base = first * kBlockTokens;
    const int begin = seen.begin > base ? seen.begin - base : 0;
    const int end =
        seen.end - base < kAhead * kBlockTokens ? seen.end - base : kAhead * kBlockTokens;
    const auto add = [&]<int kWide>(int dim) {
      const Code *values[kAhead], *wanted[kAhead];
      for (int i = 0; i < kAhead && first + i < block_end; ++i) {
        values[i] = span.heads[first + i].v + dim;
        wanted[i] = AheadOfValues(span, first + i) + dim * kBlockTokens;
      }
      Values<kRows, kWide>(values, w.d_head, wanted, begin, end,
                           w.scores + row * kScoreStride + base, w.padded,
                           w.value + row * w.padded + dim);
    };
    int d = 0;
    for (; d + kVectors * 16 <= w.padded; d += kVectors * 16) add.template operator()<kVectors>(d);
    for (; d < w.padded; d += 16) add.template operator()<1>(d);
  }
}

// --- Many rows: codes are widened once for all tiles ---------------------------------------------

// A share of the lines that come next, so that asking is spread over the tiles: the keys and
// scales of what comes next and these blocks' values.
template <class Code>
void AskForShare(const Span<Code>& span, int block, int count, int d_head, int share,
                 int num_shares) {
  const int code_lines = kBlockTokens * d_head * static_cast<int>(sizeof(Code)) / kLine;
  const int lines = 2 * code_lines + 2;
  const int begin = lines * share / num_shares, end = lines * (share + 1) / num_shares;
  for (int i = 0; i < count; ++i) {
    // Keys are widened kBuffered blocks at a time.
    const Head<Code>&now = span.heads[block + i], &next = span.heads[block + kBuffered + i];
    const Head<Code>& later = span.heads[block + kSpanBlocks + i];  // scales are read span by span
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

template <class Code>
void ScoresOfMany(const Work& w, const Span<Code>& span, int block, int count) {
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

template <class Code>
void ValuesOfMany(const Work& w, const Span<Code>& span, int block, int count) {
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

void WeighRows(const Work& w, const SpanPlace& span) {
  EachTile(w.num_rows, [&]<int kRows>(int row) {
    // A tile's values are added up together, so each row has a weight wherever the tile sees.
    const Seen tile = SeenBy(w, span, row, row + kRows - 1);
    const int begin = tile.begin / kBlockTokens, end = RoundedUp(tile.end);
    float *scores = w.scores + row * kScoreStride, *top = w.span_top + row;
    const Seen first = SeenBy(w, span, row, row);
    const Seen last = SeenBy(w, span, row + kRows - 1, row + kRows - 1);
    const bool all_see_all = last.begin < last.end && last.begin <= begin * kBlockTokens &&
                             first.end >= end * kBlockTokens;
    if (all_see_all) {
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
void MergeSpan(const Work& w, const SpanPlace& span) {
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

template <class Code>
void AddSpan(const AttendArgs& a, const Work& w, const Span<Code>& span) {
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
    each(ScoresOfMany<Code>);
    WeighRows(w, span);
    each(ValuesOfMany<Code>);
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
void FindSpan(const AttendArgs& a, const Work& w, int s, SpanPlace& span) {
  const int last = LastPosition(w), start = FirstVisible(a, w.first_position);
  const int block_begin = s * kSpan > start ? s * kSpanBlocks : start / kBlockTokens;
  const int block_end = (s + 1) * kSpan <= last ? (s + 1) * kSpanBlocks : last / kBlockTokens + 1;
  span.base = block_begin * kBlockTokens;
  span.end = (s + 1) * kSpan;
  span.num_blocks = block_end - block_begin;
}

// What is asked for beyond the last block is the start of the next KV head, which is likely to be
// taken next.
template <class Code>
void FindHeads(const AttendArgs& a, const Work& w, int kv_head, Span<Code>& span) {
  const int next_head = kv_head + 1 < a.n_kv_heads ? kv_head + 1 : kv_head;
  const int last = LastPosition(w), start = FirstVisible(a, w.first_position);
  int block = span.base / kBlockTokens, head = kv_head;
  for (int i = 0; i < span.num_blocks + kSpanBlocks; ++i) {
    span.heads[i] = HeadOf<Code>(a, block, head);
    if (++block > last / kBlockTokens) block = start / kBlockTokens, head = next_head;
  }
}

// Span by span, so that its keys and values are read from memory once for all the rows.
template <class Code>
void AttendRows(const AttendArgs& a, int first, int count, int kv_head, Work& w) {
  StartRows(a, first, count, kv_head, w);
  const SpanRange spans = SpansOf(a, first, count);
  for (int s = spans.begin; s < spans.end; ++s) {
    Span<Code> span;
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
    SpanPlace span;
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

template <class Code>
void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  EachRows(a, kv_begin, kv_end, AttendRows<Code>);
}
void MergeSpans(const AttendArgs& a, int kv_begin, int kv_end) {
  EachRows(a, kv_begin, kv_end, MergeRows);
}

}  // namespace

void AddAvx512Attend(KernelTable& table) noexcept {
  table.attend = Attend<int16_t>;
  table.attend_int8 = Attend<int8_t>;
  table.merge_spans = MergeSpans;
}

}  // namespace hearth
