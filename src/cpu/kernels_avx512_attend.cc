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

#include "cpu/avx512_attend_rows.inl"

#include "cpu/avx512_attend_tiles.inl"

using Code = int16_t;  // of K and V; int8 has kernels_avx512_attend_int8.cc

struct Work : Rows {
  float* widened;            // kBuffered blocks of keys or values
  float *k_scale, *v_scale;  // [kSpan]: the keys' already times the attention's scale
  float* scores;             // [rows, kScoreStride], then the weights
};
void Place(const AttendArgs& a, Work& w) {
  w.widened = a.scratch;
  w.k_scale = w.widened + kBuffered * kBlockTokens * ((a.d_head + 15) / 16 * 16);
  w.v_scale = w.k_scale + kSpan;
  w.scores = w.v_scale + kSpan;
  Place(a, w.scores + kAttendRows * kScoreStride, static_cast<Rows&>(w));
}
static_assert(kAttendScratch >= kBuffered * kBlockTokens * kMaxHeadDim + 2 * kSpan +
                                    kAttendRows * (kScoreStride + 2 * kMaxHeadDim + 4));

// --- Few rows: codes are widened by each tile ----------------------------------------------------

// Memory is asked for what comes kAhead blocks later: first the keys of a span, then its values,
// then the next span's keys. Further ahead was slower.
inline const Code* AheadOfKeys(const Span<Code>& span, int block) {
  const int then = block + kAhead;
  return then < span.num_blocks ? span.heads[then].k : span.heads[then - span.num_blocks].v;
}
inline const Code* AheadOfValues(const Span<Code>& span, int block) {
  const int then = block + kAhead;
  return then < span.num_blocks ? span.heads[then].v : span.heads[then].k;
}

template <int kRows>
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

template <int kRows>
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
    float* scores = w.scores + row * kScoreStride;
    WeighTile<kRows>(w, span, row, scores,
                     [&]<int kTogether, bool kMasked>(int r, int begin, int end, const Seen& seen) {
                       Weigh<kTogether, kMasked>(w.span_top + row + r, w.v_scale, begin, end, seen,
                                                 scores + r * kScoreStride,
                                                 w.span_weight + row + r);
                     });
  });
}

void AddSpan(const AttendArgs& a, const Work& w, const Span<Code>& span) {
  LoadScales(a, span, w.k_scale, w.v_scale);
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

void AttendRows(const AttendArgs& a, int first, int count, int kv_head, Work& w) {
  StartRows(a, first, count, kv_head, w);
  EachSpan<Code>(a, first, count, kv_head, w, AddSpan);
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

void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  EachRows<Work>(a, kv_begin, kv_end, AttendRows);
}
void MergeSpans(const AttendArgs& a, int kv_begin, int kv_end) {
  EachRows<Work>(a, kv_begin, kv_end, MergeRows);
}

}  // namespace

void AddAvx512Attend(KernelTable& table) noexcept {
  table.attend = Attend;
  table.merge_spans = MergeSpans;
}

}  // namespace hearth
