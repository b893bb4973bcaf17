// SPDX-License-Identifier: Apache-2.0
// What AVX2's attention over int16 and over int8 share: the softmax of a span and the merging of
// spans. Included inside an unnamed namespace, after attend_parts.inl and avx2_math.inl.

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

// One token, one KV head: positions [begin, end) of one span, whose blocks start at block_begin.
template <class Code>
struct Span {
  Head<Code> heads[kSpan / kBlockTokens];
  int block_begin, begin, end;
  int num_blocks() const { return (end + kBlockTokens - 1) / kBlockTokens - block_begin; }
};

// Lanes of eight positions from `first` on that lie in [begin, end).
inline __m256 Visible(int first, int begin, int end) {
  const __m256i position =
      _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  const __m256i early = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), position);
  const __m256i before_end = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), position);
  return _mm256_castsi256_ps(_mm256_andnot_si256(early, before_end));
}

struct Sums {
  float top, weight;
};
// Scores of one head to weights, each already times its value's scale.
template <class Code>
Sums Weigh(const Span<Code>& span, float* scores) {
  const int base = span.block_begin * kBlockTokens, count = span.num_blocks() * kBlockTokens;
  Sums sums{scores[span.begin - base], 0.0f};
  for (int j = span.begin; j < span.end; ++j) {
    if (!(scores[j - base] <= sums.top)) sums.top = scores[j - base];
  }
  __m256 weight[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int i = 0; i < count; i += 8) {
    const __m256 score = _mm256_sub_ps(_mm256_loadu_ps(scores + i), _mm256_set1_ps(sums.top));
    // Hidden lanes add +0, which no sum of weights can tell from nothing.
    const __m256 part = _mm256_and_ps(Exp8(score), Visible(base + i, span.begin, span.end));
    const int half = i / 8 % 2;
    weight[half] = _mm256_add_ps(weight[half], part);
    const float* v_scale = span.heads[i / kBlockTokens].v_scale + half * 8;
    _mm256_storeu_ps(scores + i, _mm256_mul_ps(part, _mm256_loadu_ps(v_scale)));
  }
  sums.weight = JoinPair(weight[0], weight[1]);
  return sums;
}

void Merge(const Sums& span, const float* value, int d_head, Sums& all, float* all_value) {
  const float top = span.top <= all.top ? all.top : span.top;
  const float old_share = Exp(all.top - top), new_share = Exp(span.top - top);
  all.top = top;
  all.weight = FusedMulAdd(all.weight, old_share, span.weight * new_share);
  const __m256 old8 = _mm256_set1_ps(old_share), new8 = _mm256_set1_ps(new_share);
  for (int d = 0; d < d_head; d += 8) {
    const __m256 added = _mm256_mul_ps(_mm256_loadu_ps(value + d), new8);
    _mm256_storeu_ps(all_value + d, _mm256_fmadd_ps(_mm256_loadu_ps(all_value + d), old8, added));
  }
}

// Starts from the sink, a score of weight one and no value, or from nothing.
Sums StartOf(const AttendArgs& a, int head, float* value) {
  for (int i = 0; i < kMaxHeadDim; ++i) value[i] = 0.0f;
  if (a.sinks == nullptr) return {FloatOf(0xff800000u), 0.0f};
  return {a.sinks[head], 1.0f};
}

void Finish(const AttendArgs& a, int t, int head, const Sums& all, const float* value) {
  const float inverse = 1.0f / all.weight;
  float* out = a.out + t * a.q_stride + int64_t{head} * a.d_head;
  for (int d = 0; d < a.d_head; ++d) out[d] = value[d] * inverse;
}

// Leaves one head's share of a span for merge_spans.
void Leave(const AttendArgs& a, int span, int kv_head, int row, const Sums& sums,
           const float* value) {
  const SpanPart part = PartOf(a, span, kv_head, row);
  *part.top = sums.top;
  *part.weight = sums.weight;
  for (int d = 0; d < a.d_head; ++d) part.value[d] = value[d];
}

// kHeads heads of one token from start to end: add(span, scores, sums, values) takes one span.
// Scratch holds scores, this span's values and all values, kHeads times each.
template <class Code, int kHeads, class Add>
void EachSpan(const AttendArgs& a, int t, int kv_head, int head, Add&& add) {
  const int position = a.first_position + t, visible = FirstVisible(a, position);
  const int group = a.n_heads / a.n_kv_heads;
  float* scores = a.scratch;
  float* value = scores + kHeads * kSpan;
  float* all_value = value + kHeads * kMaxHeadDim;
  Sums all[kHeads];
  for (int h = 0; h < kHeads; ++h) all[h] = StartOf(a, head + h, all_value + h * kMaxHeadDim);
  const SpanRange spans = SpansOf(a, t, 1);
  for (int s = spans.begin; s < spans.end; ++s) {
    Span<Code> span;
    span.begin = s * kSpan > visible ? s * kSpan : visible;
    span.end = (s + 1) * kSpan <= position ? (s + 1) * kSpan : position + 1;
    span.block_begin = span.begin / kBlockTokens;
    for (int b = 0; b < span.num_blocks(); ++b) {
      span.heads[b] = HeadOf<Code>(a, span.block_begin + b, kv_head);
    }
    Sums sums[kHeads];
    add(span, scores, sums, value);
    for (int h = 0; h < kHeads; ++h) {
      const float* of_head = value + h * kMaxHeadDim;
      if (a.parts != nullptr) {
        Leave(a, s, kv_head, t * group + head % group + h, sums[h], of_head);
      } else {
        Merge(sums[h], of_head, a.d_head, all[h], all_value + h * kMaxHeadDim);
      }
    }
  }
  if (a.parts != nullptr) return;
  for (int h = 0; h < kHeads; ++h) Finish(a, t, head + h, all[h], all_value + h * kMaxHeadDim);
}

using HeadsKernel = void (*)(const AttendArgs& a, int t, int kv_head, int head);
void EachHeads(const AttendArgs& a, int kv_begin, int kv_end, HeadsKernel four, HeadsKernel one) {
  const int group = a.n_heads / a.n_kv_heads;
  for (int kv_head = kv_begin; kv_head < kv_end; ++kv_head) {
    for (int t = 0; t < a.count; ++t) {
      int h = 0;
      for (; h + 4 <= group; h += 4) four(a, t, kv_head, kv_head * group + h);
      for (; h < group; ++h) one(a, t, kv_head, kv_head * group + h);
    }
  }
}
