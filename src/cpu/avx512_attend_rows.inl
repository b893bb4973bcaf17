// SPDX-License-Identifier: Apache-2.0
// What AVX-512's attention over int16 and over int8 share: which rows see what, the softmax of a
// span and the merging of spans. Included inside an unnamed namespace, after attend_parts.inl and
// avx512_math.inl.

constexpr int kSpanBlocks = kSpan / kBlockTokens;
constexpr int kTile = 8;   // rows
constexpr int kLine = 64;  // bytes
// Scores of a row, not a power of two apart: a tile's rows would share a few sets of the cache.
constexpr int kScoreStride = kSpan + kBlockTokens;

// Always inline: g++ 12 takes it for a function without effect and drops its calls.
[[gnu::always_inline]] inline void Prefetch(const void* at) {
  _mm_prefetch(static_cast<const char*>(at), _MM_HINT_T0);
}

// One KV head of one block.
template <class Code>
struct Head {
  const Code *k, *v;
  const float *k_scale, *v_scale;
};
template <class Code>
inline Head<Code> HeadOf(const AttendArgs& a, int block, int kv_head) {
  const uint8_t* at = a.pool + int64_t{a.table[block]} * a.block_bytes + a.layer_offset +
                      kv_head * KvHeadBytes(a.d_head, sizeof(Code));
  const int num_codes = kBlockTokens * KvDims(a.d_head, sizeof(Code));
  const auto* codes = reinterpret_cast<const Code*>(at);
  const auto* scales = reinterpret_cast<const float*>(codes + 2 * num_codes);
  return {codes, codes + num_codes, scales, scales + kBlockTokens};
}

// Positions of a span, counted from its first block's first.
struct Seen {
  int begin, end;
};

// Calls body.template operator()<kRows>(first row) for tiles that cover all rows.
template <class F>
void EachTile(int num_rows, F&& body) {
  int r = 0;
  for (; r + kTile <= num_rows; r += kTile) body.template operator()<kTile>(r);
  if (r + 4 <= num_rows) body.template operator()<4>(r), r += 4;
  if (r + 2 <= num_rows) body.template operator()<2>(r), r += 2;
  if (r < num_rows) body.template operator()<1>(r);
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

// Rows [0, num_rows) of one KV head: their queries, and what is kept between and within spans.
// Vectors of values are padded to whole registers.
struct Rows {
  float *value, *all;                            // [rows, padded]: of this span, of all so far
  float *span_top, *span_weight, *top, *weight;  // [rows]
  const float* q[kAttendRows];
  int first_position;  // of row 0
  int group, num_rows, padded, d_head, window;
};
// What all rows need of scratch, from `at` on.
void Place(const AttendArgs& a, float* at, Rows& w) {
  w.group = a.n_heads / a.n_kv_heads;
  w.padded = (a.d_head + 15) / 16 * 16;
  w.d_head = a.d_head;
  w.window = a.window;
  w.value = at;
  w.all = w.value + kAttendRows * w.padded;
  w.span_top = w.all + kAttendRows * w.padded;
  w.span_weight = w.span_top + kAttendRows;
  w.top = w.span_weight + kAttendRows;
  w.weight = w.top + kAttendRows;
}
// Where a span's results go when others merge them, and are found then.
void TakePart(const AttendArgs& a, int span, int kv_head, int first_token, Rows& w) {
  const SpanPart part = PartOf(a, span, kv_head, first_token * w.group);
  w.span_top = part.top;
  w.span_weight = part.weight;
  w.value = part.value;
}

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
inline Seen SeenBy(const Rows& w, const SpanPlace& span, int first, int last) {
  const int early = w.first_position + first / w.group, late = w.first_position + last / w.group;
  const int visible = w.window > 0 ? early - w.window + 1 : 0;
  const int begin = visible > span.base ? visible : span.base;
  const int end = late + 1 < span.end ? late + 1 : span.end;
  return begin < end ? Seen{begin - span.base, end - span.base} : Seen{0, 0};
}

// The scales of a span's keys, times the attention's, and of its values, each side by side.
template <class Code>
inline void LoadScales(const AttendArgs& a, const Span<Code>& span, float* k_scale,
                       float* v_scale) {
  for (int b = 0; b < span.num_blocks; ++b) {
    const __m512 scale =
        _mm512_mul_ps(_mm512_loadu_ps(span.heads[b].k_scale), _mm512_set1_ps(a.scale));
    _mm512_storeu_ps(k_scale + b * kBlockTokens, scale);
    _mm512_storeu_ps(v_scale + b * kBlockTokens, _mm512_loadu_ps(span.heads[b].v_scale));
  }
}

inline int RoundedUp(int position) { return (position + kBlockTokens - 1) / kBlockTokens; }

// Finds the tops of a tile's rows and calls weigh.template operator()<rows, whether to mask>(first
// row of the tile, blocks from, to, what is seen) for all of them.
template <int kRows, class F>
void WeighTile(const Rows& w, const SpanPlace& span, int row, const float* scores, F&& weigh) {
  // A tile's values are added up together, so each row has a weight wherever the tile sees.
  const Seen tile = SeenBy(w, span, row, row + kRows - 1);
  const int begin = tile.begin / kBlockTokens, end = RoundedUp(tile.end);
  float* top = w.span_top + row;
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
      weigh.template operator()<kTogether, false>(r, begin, end, tile);
    }
    return;
  }
  for (int r = 0; r < kRows; ++r) {
    const Seen seen = SeenBy(w, span, row + r, row + r);
    top[r] = Top<true>(scores + r * kScoreStride, begin, end, seen);
    weigh.template operator()<1, true>(r, begin, end, seen);
  }
}

// Sixteen rows at a time, but a row that sees nothing of the span stays as it is.
void MergeSpan(const Rows& w, const SpanPlace& span) {
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

// Rows of tokens [first, first + count), which start from the sink, a score of weight one and no
// value, or from nothing.
void StartRows(const AttendArgs& a, int first, int count, int kv_head, Rows& w) {
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

void FinishRows(const AttendArgs& a, const Rows& w) {
  for (int r = 0; r < w.num_rows; ++r) {
    const __m512 inverse = _mm512_set1_ps(1.0f / w.weight[r]);
    float* out = a.out + (w.q[r] - a.q);
    for (int d = 0; d < a.d_head; d += 16) {
      _mm512_mask_storeu_ps(out + d, FirstLanes(a.d_head - d),
                            _mm512_mul_ps(_mm512_loadu_ps(w.all + r * w.padded + d), inverse));
    }
  }
}

inline int LastPosition(const Rows& w) { return w.first_position + (w.num_rows - 1) / w.group; }

// The blocks of span s that the rows see.
void FindSpan(const AttendArgs& a, const Rows& w, int s, SpanPlace& span) {
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
void FindHeads(const AttendArgs& a, const Rows& w, int kv_head, Span<Code>& span) {
  const int next_head = kv_head + 1 < a.n_kv_heads ? kv_head + 1 : kv_head;
  int last = LastPosition(w), start = FirstVisible(a, w.first_position);
  if (a.parts != nullptr) {  // the call takes these spans alone
    if (last >= a.span_end * kSpan) last = a.span_end * kSpan - 1;
    if (start < a.span_begin * kSpan) start = a.span_begin * kSpan;
  }
  int block = span.base / kBlockTokens, head = kv_head;
  for (int i = 0; i < span.num_blocks + kSpanBlocks; ++i) {
    span.heads[i] = HeadOf<Code>(a, block, head);
    if (++block > last / kBlockTokens) block = start / kBlockTokens, head = next_head;
  }
}

// Calls add for every span of the rows, so that its keys and values are read from memory once for
// all of them, and merges what it leaves or lets others do so.
template <class Code, class Work, class Add>
void EachSpan(const AttendArgs& a, int first, int count, int kv_head, Work& w, Add&& add) {
  const SpanRange spans = SpansOf(a, first, count);
  for (int s = spans.begin; s < spans.end; ++s) {
    Span<Code> span;
    FindSpan(a, w, s, span);
    FindHeads(a, w, kv_head, span);
    if (a.parts != nullptr) {
      TakePart(a, s, kv_head, first, w);
      add(a, w, span);
    } else {
      add(a, w, span);
      MergeSpan(w, span);
    }
  }
  if (a.parts == nullptr) FinishRows(a, w);
}

template <class Work, class RowsKernel>
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
