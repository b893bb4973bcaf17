// SPDX-License-Identifier: Apache-2.0
// All of attention between two products in one launch, for steps with one token of each sequence:
// no token needs K or V that another block writes, but for its own, which every block that sees it
// computes for itself. Spans are merged by the block that comes last of those of a KV head, and
// rows quantised by the last of a token: what orders them is Arrive alone.
#pragma once
#include "cuda/args.h"
#include "cuda/attend.h"
#include "cuda/numbers.h"
#include "cuda/rope.h"
#include "cuda/rows.h"
namespace hearth::cuda {

// Behind the memory of AttendKernel: scales of query heads, of the own K and V, a word for IsLast,
// padding, then the own K and V.
constexpr int kDecodeWords = kAttendHeads + 4;
constexpr int64_t DecodeSharedBytes(int d_head) {
  return AttendSharedBytes(d_head) + int64_t{4} * kDecodeWords + int64_t{4} * d_head;
}

// Whether this block is the last of `count` that come here; then all of its threads see what the
// others wrote before they came, and the counter is zero again.
HEARTH_DEVICE bool IsLast(int32_t* arrived, int count, int32_t* answer) {
  Barrier();
  if (Thread() == 0) {
    const int32_t before = Arrive(arrived);
    *answer = before == count - 1 ? 1 : 0;
    if (*answer != 0) *arrived = 0;
  }
  Barrier();
  return *answer != 0;
}

// Query heads with norm and rope to shared memory, dimension by dimension, the heads side by side;
// heads that are not there are zero.
HEARTH_DEVICE void LoadQueries(const DecodeArgs& a, const SpanWork& work, int token, float* q,
                               float* scales) {
  const RopeArgs& rope = a.rope;
  const float* heads = rope.q + token * rope.q_stride + int64_t{work.first_head} * rope.d_head;
  if (rope.q_norm != nullptr) {
    for (int h = Thread() / kWarp; h < work.num_heads; h += kAttendWarps) {
      const float scale = HeadScale(heads + h * rope.d_head, rope.eps, rope.d_head);
      if (Thread() % kWarp == 0) scales[h] = scale;
    }
    Barrier();
  }
  for (int i = Thread(); i < kAttendHeads * rope.d_head; i += kAttendThreads) {
    const int d = i / kAttendHeads, h = i % kAttendHeads;
    float value = 0.0f;
    if (h < work.num_heads) {
      const float scale = rope.q_norm != nullptr ? scales[h] : 0.0f;
      value = TurnedAt(rope, heads + h * rope.d_head, rope.q_norm, scale, token, d);
    }
    q[i] = value;
  }
}

// The token's own K, by the first warp, and V, by the second: to shared memory, and to the cache by
// one of the blocks that share the KV head. A lane reads only what it wrote itself.
HEARTH_DEVICE void StoreOwn(const DecodeArgs& a, const SpanWork& work, const SpanMemory& memory,
                            int token, TokenPlace place, bool writes) {
  const RopeArgs& rope = a.rope;
  const int warp = Thread() / kWarp, lane = Thread() % kWarp;
  if (warp > 1) return;
  const int64_t at = token * rope.kv_stride + int64_t{work.kv_head} * rope.d_head;
  float* head = memory.weights + warp * rope.d_head;  // not needed for weights yet
  if (warp == 0) {
    const float* k = rope.k + at;
    const float scale = rope.k_norm != nullptr ? HeadScale(k, rope.eps, rope.d_head) : 0.0f;
    for (int i = lane; i < rope.d_head; i += kWarp) {
      head[i] = TurnedAt(rope, k, rope.k_norm, scale, token, i);
    }
  } else {
    for (int i = lane; i < rope.d_head; i += kWarp) head[i] = rope.v[at + i];
  }
  int16_t* codes = warp == 0 ? memory.own_k : memory.own_v;
  const float scale = StoreHead(head, rope.d_head, codes, 1);
  if (lane == 0) memory.own_scales[warp] = scale;
  if (!writes) return;
  const HeadInBlock to = HeadAt(rope.kv, place.table, place.position, work.kv_head, rope.d_head);
  const int slot = place.position % kBlockTokens;
  int16_t* to_codes = warp == 0 ? to.k + slot : to.v + slot * rope.d_head;
  const int step = warp == 0 ? kBlockTokens : 1;
  for (int i = lane; i < rope.d_head; i += kWarp) to_codes[i * step] = codes[i];
  if (lane == 0) (warp == 0 ? to.k_scale : to.v_scale)[slot] = scale;
}

// Shared memory: DecodeSharedBytes(d_head). d_head is a multiple of 8.
HEARTH_DEVICE void DecodeKernel(const DecodeArgs& a) {
  const AttendArgs& attend = a.attend;
  const int token = BlockZ(), d_head = attend.d_head;
  const TokenPlace place = attend.places[token];
  SpanWork work = WorkOf(attend, place);
  if (work.base > place.position) return;
  if (place.position < work.base + kSpan) work.own = place.position - work.base;
  SpanMemory memory = SpanMemoryOf(d_head);
  auto* q_scales = reinterpret_cast<float*>(memory.values + 2 * kPiece * d_head);
  auto* answer = reinterpret_cast<int32_t*>(q_scales + kAttendHeads + 2);
  memory.own_scales = q_scales + kAttendHeads;
  memory.own_k = reinterpret_cast<int16_t*>(q_scales + kDecodeWords);
  memory.own_v = memory.own_k + d_head;
  FetchPiece(attend, work, 0, memory.values);
  CopyCommit();
  LoadQueries(a, work, token, memory.q, q_scales);
  const int group = attend.n_heads / attend.n_kv_heads;
  const bool is_first = work.first_head == work.kv_head * group;
  if (work.own >= 0) StoreOwn(a, work, memory, token, place, is_first);
  AttendSpan<true>(attend, work, memory, token);

  const int blocks = attend.n_kv_heads * ((group + kAttendHeads - 1) / kAttendHeads);
  const int spans = SpansOf(place.position, attend.window);
  int32_t* arrived = a.arrived + int64_t{token} * (1 + blocks);
  if (!IsLast(arrived + 1 + BlockY(), spans, answer)) return;
  float* out = a.combine.out + token * a.combine.out_stride;
  for (int i = Thread(); i < work.num_heads * d_head; i += kAttendThreads) {
    const int h = work.first_head + i / d_head, d = i % d_head;
    out[int64_t{h} * d_head + d] = CombinedAt(a.combine, token, h, d, spans);
  }
  if (a.act.hi == nullptr || !IsLast(arrived, blocks, answer)) return;
  QuantiseRow<kAttendThreads>(out, a.act, a.first_row + token);
}

}  // namespace hearth::cuda
