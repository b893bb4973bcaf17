// SPDX-License-Identifier: Apache-2.0
// The definition of attention over int16 and over int8 (docs/numerics.md).
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_parts.h"
#include "cpu/kv_int8.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/attend_parts.inl"

// What one span of positions contributes to one head.
struct Partial {
  float top, weight;  // the largest score; the sum of exp(score - top)
  float* value;       // [d_head]: the weighted sum of V
};

// One KV head of the block that holds a position.
template <class Key, class Value>
struct HeadInBlock {
  const Key* k;
  const Value* v;
  const float *k_scale, *v_scale;
};
template <class Key, class Value = Key>
HeadInBlock<Key, Value> HeadAt(const AttendArgs& a, int position, int kv_head) {
  const int64_t block = a.table[position / kBlockTokens];
  const uint8_t* at = a.pool + block * a.block_bytes + a.layer_offset +
                      kv_head * KvHeadBytes(a.d_head, sizeof(Key));
  const int num_codes = kBlockTokens * KvDims(a.d_head, sizeof(Key));
  const auto* k = reinterpret_cast<const Key*>(at);
  const auto* v = reinterpret_cast<const Value*>(k + num_codes);
  const auto* scales = reinterpret_cast<const float*>(v + num_codes);
  return {k, v, scales, scales + kBlockTokens};
}

// Scores to weights: the span's top and the sum of its weights, in sixteen lanes by position.
void Weigh(int begin, int end, float* scores, Partial& out) {
  out.top = scores[0];
  for (int j = begin; j < end; ++j) {
    // A NaN score replaces the top, and may be replaced; its own weight is NaN all the same.
    if (!(scores[j - begin] <= out.top)) out.top = scores[j - begin];
  }
  float lanes[16] = {};
  for (int j = begin; j < end; ++j) {
    scores[j - begin] = Exp(scores[j - begin] - out.top);
    lanes[j % 16] += scores[j - begin];
  }
  out.weight = JoinLanes(lanes);
}

// Scores ascend over the head's dimensions, the values over positions.
void Span(const AttendArgs& a, const float* q, int kv_head, int begin, int end, float* scores,
          Partial& out) {
  for (int j = begin; j < end; ++j) {
    const auto head = HeadAt<int16_t>(a, j, kv_head);
    const int lane = j % kBlockTokens;
    float dot = 0.0f;
    for (int d = 0; d < a.d_head; ++d) {
      dot = FusedMulAdd(q[d], static_cast<float>(head.k[d * kBlockTokens + lane]), dot);
    }
    scores[j - begin] = dot * (head.k_scale[lane] * a.scale);
  }
  Weigh(begin, end, scores, out);
  for (int d = 0; d < a.d_head; ++d) out.value[d] = 0.0f;
  for (int j = begin; j < end; ++j) {
    const auto head = HeadAt<int16_t>(a, j, kv_head);
    const int lane = j % kBlockTokens;
    const float weight = scores[j - begin] * head.v_scale[lane];
    for (int d = 0; d < a.d_head; ++d) {
      out.value[d] =
          FusedMulAdd(weight, static_cast<float>(head.v[lane * a.d_head + d]), out.value[d]);
    }
  }
}

// --- int8: long sums of whole numbers, exact in any order ----------------------------------------

// Whole numbers of up to `max`, rounded to nearest even, for floats of the same scale, which is
// returned. With a NaN or an infinity among them the scale is NaN and all numbers are zero.
float ToWhole(const float* values, int n, float max, int32_t* whole) {
  uint32_t top = 0;  // magnitudes compare as integers, and NaN above all
  for (int i = 0; i < n; ++i) {
    const uint32_t magnitude = BitsOf(values[i]) & 0x7fffffffu;
    if (magnitude > top) top = magnitude;
  }
  const bool finite = top < 0x7f800000u;
  const float largest = FloatOf(top);
  // Below 2^-100 the inverse would overflow; such values are as good as zero.
  const float inverse = finite && largest >= 0x1p-100f ? max / largest : 0.0f;
  for (int i = 0; i < n; ++i) {
    const float scaled = finite ? values[i] * inverse : 0.0f;
    whole[i] = static_cast<int32_t>((scaled + kRound) - kRound);
  }
  return finite ? largest / max : FloatOf(0x7fc00000u);
}

void SpanInt8(const AttendArgs& a, const float* q, int kv_head, int begin, int end, float* scores,
              Partial& out) {
  int32_t query[kMaxHeadDim], weights[kSpan], sums[kMaxHeadDim] = {};
  const float q_scale = ToWhole(q, a.d_head, kActMax, query);
  for (int j = begin; j < end; ++j) {
    const auto head = HeadAt<uint8_t, int8_t>(a, j, kv_head);
    const int lane = j % kBlockTokens;
    int32_t dot = 0;
    for (int d = 0; d < a.d_head; ++d) {
      dot += query[d] * (head.k[Int8KeyAt(d, lane)] - kInt8KeyZero);
    }
    scores[j - begin] = (static_cast<float>(dot) * q_scale) * (head.k_scale[lane] * a.scale);
  }
  Weigh(begin, end, scores, out);
  for (int j = begin; j < end; ++j) {
    scores[j - begin] *= HeadAt<uint8_t, int8_t>(a, j, kv_head).v_scale[j % kBlockTokens];
  }
  const float scale = ToWhole(scores, end - begin, kInt8WeightMax, weights);
  const int dims = KvDims(a.d_head, 1);
  for (int j = begin; j < end; ++j) {
    const auto head = HeadAt<uint8_t, int8_t>(a, j, kv_head);
    for (int d = 0; d < a.d_head; ++d) {
      sums[d] += weights[j - begin] * head.v[Int8ValueAt(dims, d, j % kBlockTokens)];
    }
  }
  for (int d = 0; d < a.d_head; ++d) out.value[d] = static_cast<float>(sums[d]) * scale;
}

// --- Both ----------------------------------------------------------------------------------------

void Merge(const Partial& span, int d_head, Partial& all) {
  const float top = span.top <= all.top ? all.top : span.top;
  const float old_share = Exp(all.top - top), new_share = Exp(span.top - top);
  all.top = top;
  all.weight = FusedMulAdd(all.weight, old_share, span.weight * new_share);
  for (int d = 0; d < d_head; ++d) {
    all.value[d] = FusedMulAdd(all.value[d], old_share, span.value[d] * new_share);
  }
}

// Starts from the sink, a score of weight one and no value, or from nothing.
Partial StartOf(const AttendArgs& a, int head, float* value) {
  for (int d = 0; d < a.d_head; ++d) value[d] = 0.0f;
  if (a.sinks == nullptr) return {FloatOf(0xff800000u), 0.0f, value};
  return {a.sinks[head], 1.0f, value};
}

void Finish(const AttendArgs& a, int t, int head, const Partial& all) {
  const float inverse = 1.0f / all.weight;
  float* out = a.out + t * a.q_stride + head * a.d_head;
  for (int d = 0; d < a.d_head; ++d) out[d] = all.value[d] * inverse;
}

// Spans merge in ascending order; what is to be merged later is left in `parts`.
using SpanKernel = void (*)(const AttendArgs& a, const float* q, int kv_head, int begin, int end,
                            float* scores, Partial& out);
template <SpanKernel kSpanKernel>
void AttendHead(const AttendArgs& a, int t, int head) {
  const int position = a.first_position + t, visible = FirstVisible(a, position);
  const int group = a.n_heads / a.n_kv_heads, kv_head = head / group;
  const float* q = a.q + t * a.q_stride + head * a.d_head;
  Partial all = StartOf(a, head, a.scratch + kSpan);
  const SpanRange spans = SpansOf(a, t, 1);
  for (int s = spans.begin; s < spans.end; ++s) {
    const int begin = s * kSpan > visible ? s * kSpan : visible;
    const int end = (s + 1) * kSpan <= position ? (s + 1) * kSpan : position + 1;
    Partial span{0.0f, 0.0f, a.scratch + kSpan + kMaxHeadDim};
    if (a.parts == nullptr) {
      kSpanKernel(a, q, kv_head, begin, end, a.scratch, span);
      Merge(span, a.d_head, all);
    } else {
      const SpanPart part = PartOf(a, s, kv_head, t * group + head % group);
      span.value = part.value;
      kSpanKernel(a, q, kv_head, begin, end, a.scratch, span);
      *part.top = span.top;
      *part.weight = span.weight;
    }
  }
  if (a.parts == nullptr) Finish(a, t, head, all);
}

template <SpanKernel kSpanKernel>
void Attend(const AttendArgs& a, int kv_begin, int kv_end) {
  const int group = a.n_heads / a.n_kv_heads;
  for (int t = 0; t < a.count; ++t) {
    for (int head = kv_begin * group; head < kv_end * group; ++head) {
      AttendHead<kSpanKernel>(a, t, head);
    }
  }
}

void MergeSpans(const AttendArgs& a, int kv_begin, int kv_end) {
  const int group = a.n_heads / a.n_kv_heads;
  for (int t = 0; t < a.count; ++t) {
    const SpanRange spans = SpansOf(a, t, 1);
    for (int head = kv_begin * group; head < kv_end * group; ++head) {
      Partial all = StartOf(a, head, a.scratch);
      for (int s = spans.begin; s < spans.end; ++s) {
        const SpanPart part = PartOf(a, s, head / group, t * group + head % group);
        Merge({*part.top, *part.weight, part.value}, a.d_head, all);
      }
      Finish(a, t, head, all);
    }
  }
}

}  // namespace

void AddScalarAttend(KernelTable& table) noexcept {
  table.attend = Attend<Span>;
  table.attend_int8 = Attend<SpanInt8>;
  table.merge_spans = MergeSpans;
}

}  // namespace hearth
