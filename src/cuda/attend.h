// SPDX-License-Identifier: Apache-2.0
// Paged attention cut into spans of 256 positions (flash-decoding with a fixed split), and the
// merge of spans in ascending order. A block takes one span for one token and up to eight query
// heads of one KV head, so that K and V are read once for all of them.
#pragma once
#include "cuda/args.h"
#include "cuda/numbers.h"
#include "cuda/rope.h"
namespace hearth::cuda {

// Positions of V in shared memory at once, twice: 32 x 256 dimensions x 2 bytes x 2 = 32 KiB at
// most.
constexpr int kPiece = 32;

HEARTH_DEVICE int FirstVisible(int position, int window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

// What a block of the kernel works on.
struct SpanWork {
  int table, kv_head;
  int first_head, num_heads;  // query heads
  int base;                   // the span's first position
  int begin, end;             // those that the token sees, relative to base
  int own;  // likewise the token's own, if its K and V are not in the cache yet; -1: none
};

// Its shared memory, from the start: q, weights, a few sums, then V.
struct SpanMemory {
  float* q;         // [kAttendHeads, d_head]
  float* weights;   // [kAttendHeads, kSpan]
  float* scaled;    // [kAttendHeads, kSpan]: weight times the value's scale
  float* tops;      // [kAttendHeads, warps]
  int16_t* values;  // [2, kPiece, d_head]
  // Where K and V of the token itself are not in the cache yet (decode.h):
  int16_t *own_k, *own_v;  // [d_head]
  float* own_scales;       // of K, of V
};
constexpr int kAttendWarps = kAttendThreads / kWarp;
constexpr int64_t AttendSharedBytes(int d_head) {
  return int64_t{4} * kAttendHeads * (d_head + 2 * kSpan + kAttendWarps) +
         int64_t{2} * 2 * kPiece * d_head;
}
HEARTH_DEVICE SpanMemory SpanMemoryOf(int d_head) {
  auto* at = reinterpret_cast<float*>(SharedMemory());
  SpanMemory memory{};
  memory.q = at;
  memory.weights = memory.q + kAttendHeads * d_head;
  memory.scaled = memory.weights + kAttendHeads * kSpan;
  memory.tops = memory.scaled + kAttendHeads * kSpan;
  memory.values = reinterpret_cast<int16_t*>(memory.tops + kAttendHeads * kAttendWarps);
  return memory;
}

// Starts the copy of one piece of V, sixteen bytes at a time; positions that nobody sees are left
// out, and rows of a table that is not there are never looked at.
HEARTH_DEVICE void FetchPiece(const AttendArgs& a, const SpanWork& work, int piece,
                              int16_t* values) {
  const int per_row = a.d_head / 8;  // sixteen bytes each
  const int first = piece * kPiece;
  int16_t* to = values + (piece % 2) * kPiece * a.d_head;
  for (int i = Thread(); i < kPiece * per_row; i += kAttendThreads) {
    const int row = i / per_row, column = (i - row * per_row) * 8;
    const int at = first + row;
    if (at < work.begin || at >= work.end || at == work.own) continue;
    const HeadInBlock head = HeadAt(a.kv, work.table, work.base + at, work.kv_head, a.d_head);
    CopyAsync16(to + row * a.d_head + column,
                head.v + (work.base + at) % kBlockTokens * a.d_head + column);
  }
}

// Two neighbouring keys at one dimension; `own` is which of them the token's own is.
template <bool kHasOwn>
HEARTH_DEVICE uint32_t KeysAt(const int16_t* keys, const SpanMemory& memory, int own, int d) {
  if constexpr (kHasOwn) {
    if (own == 0) return static_cast<uint16_t>(memory.own_k[d]);
    if (own == 1) {
      return static_cast<uint16_t>(keys[0]) | uint32_t{static_cast<uint16_t>(memory.own_k[d])}
                                                  << 16;
    }
  }
  return *reinterpret_cast<const uint32_t*>(keys);
}

// The scores of two neighbouring positions for all heads: chains over the dimensions, ascending.
template <bool kHasOwn>
HEARTH_DEVICE void ScoresOf(const AttendArgs& a, const SpanWork& work, const SpanMemory& memory,
                            int first, float (&scores)[2][kAttendHeads]) {
  const float* q = memory.q;
  const int own = work.own - first;
  const HeadInBlock head = HeadAt(a.kv, work.table, work.base + first, work.kv_head, a.d_head);
  const int lane = (work.base + first) % kBlockTokens;
  for (int h = 0; h < kAttendHeads; ++h) scores[0][h] = scores[1][h] = 0.0f;
  for (int d = 0; d < a.d_head; ++d) {
    const uint32_t pair = KeysAt<kHasOwn>(head.k + d * kBlockTokens + lane, memory, own, d);
    const auto even = static_cast<float>(static_cast<int16_t>(pair & 0xffffu));
    const auto odd = static_cast<float>(static_cast<int16_t>(pair >> 16));
    for (int h = 0; h < kAttendHeads; ++h) {
      const float value = q[d * kAttendHeads + h];
      scores[0][h] = Fma(value, even, scores[0][h]);
      scores[1][h] = Fma(value, odd, scores[1][h]);
    }
  }
  for (int i = 0; i < 2; ++i) {
    const float k_scale = kHasOwn && i == own ? memory.own_scales[0] : head.k_scale[lane + i];
    const float factor = k_scale * a.scale;
    for (int h = 0; h < kAttendHeads; ++h) scores[i][h] = scores[i][h] * factor;
  }
}

// The larger; a NaN wins over what it meets first. Whichever wins in the end, a NaN score's own
// weight is NaN, and so is the result.
HEARTH_DEVICE float Larger(float a, float b) { return a <= b ? b : a; }

// The largest of what the warps left.
HEARTH_DEVICE float TopOf(const float* tops, int head) {
  float top = tops[head * kAttendWarps];
  for (int w = 1; w < kAttendWarps; ++w) top = Larger(top, tops[head * kAttendWarps + w]);
  return top;
}

// The largest score of the block for each head, in every thread.
HEARTH_DEVICE void TopsOf(const float (&scores)[2][kAttendHeads], float* tops,
                          float (&top)[kAttendHeads]) {
  for (int h = 0; h < kAttendHeads; ++h) {
    float x = Larger(scores[0][h], scores[1][h]);
    for (int mask = 16; mask >= 1; mask /= 2) x = Larger(x, FromLane(x, mask));
    if (Thread() % kWarp == 0) tops[h * kAttendWarps + Thread() / kWarp] = x;
  }
  Barrier();
  for (int h = 0; h < kAttendHeads; ++h) top[h] = TopOf(tops, h);
}

// Weights of the thread's two positions; zero where the token does not see.
HEARTH_DEVICE void StoreWeights(const AttendArgs& a, const SpanWork& work, const SpanMemory& memory,
                                int first, const float (&scores)[2][kAttendHeads],
                                const float (&top)[kAttendHeads]) {
  for (int i = 0; i < 2; ++i) {
    const int at = first + i;
    const bool sees = at >= work.begin && at < work.end;
    float v_scale = 0.0f;
    if (sees && at == work.own) {
      v_scale = memory.own_scales[1];
    } else if (sees) {
      const HeadInBlock head = HeadAt(a.kv, work.table, work.base + at, work.kv_head, a.d_head);
      v_scale = head.v_scale[(work.base + at) % kBlockTokens];
    }
    for (int h = 0; h < kAttendHeads; ++h) {
      const float weight = sees ? Exp(scores[i][h] - top[h]) : 0.0f;
      memory.weights[h * kSpan + at] = weight;
      memory.scaled[h * kSpan + at] = weight * v_scale;
    }
  }
}

HEARTH_DEVICE float* PartOf(const AttendArgs& a, int token, int head, int slot) {
  return a.parts + ((int64_t{token} * a.n_heads + head) * a.max_spans + slot) * (a.d_head + 2);
}

// The sum of weights in sixteen lanes by position: thread 16 h + i has lane i of head h.
HEARTH_DEVICE void StoreSums(const AttendArgs& a, const SpanWork& work, const SpanMemory& memory,
                             int token, int slot) {
  const int h = Thread() / 16, lane = Thread() % 16;
  float sum = 0.0f;
  for (int at = lane; at < kSpan; at += 16) sum += memory.weights[h * kSpan + at];
  sum = JoinLanes(sum);
  if (lane != 0 || h >= work.num_heads) return;
  float* part = PartOf(a, token, work.first_head + h, slot);
  part[a.d_head] = TopOf(memory.tops, h);
  part[a.d_head + 1] = sum;
}

// Weighted values: a warp takes two heads, a lane two neighbouring dimensions of each, chains over
// positions. Dimensions beyond 64 are taken in turns of 64 (`turn`), V anew for each of them.
HEARTH_DEVICE void ValuesOf(const AttendArgs& a, const SpanWork& work, const SpanMemory& memory,
                            int token, int slot) {
  constexpr int kTurns = kMaxHeadDim / 64;
  const int lane = Thread() % kWarp, h = Thread() / kWarp * 2;
  float sums[kTurns][4] = {};
  const int pieces = kSpan / kPiece;
  for (int piece = 0; piece < pieces; ++piece) {
    if (piece + 1 < pieces) FetchPiece(a, work, piece + 1, memory.values);
    CopyCommit();
    CopyWait<1>();
    Barrier();
    const int begin = Max(work.begin, piece * kPiece), end = Min(work.end, (piece + 1) * kPiece);
    for (int at = begin; at < end; ++at) {
      const float w0 = memory.scaled[h * kSpan + at], w1 = memory.scaled[(h + 1) * kSpan + at];
      const int16_t* row =
          at == work.own ? memory.own_v : memory.values + at % (2 * kPiece) * a.d_head;
      for (int turn = 0; turn < kTurns; ++turn) {
        const int d = turn * 64 + 2 * lane;
        if (d >= a.d_head) continue;
        const auto even = static_cast<float>(row[d]), odd = static_cast<float>(row[d + 1]);
        sums[turn][0] = Fma(w0, even, sums[turn][0]);
        sums[turn][1] = Fma(w0, odd, sums[turn][1]);
        sums[turn][2] = Fma(w1, even, sums[turn][2]);
        sums[turn][3] = Fma(w1, odd, sums[turn][3]);
      }
    }
    Barrier();
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    const int d = turn * 64 + 2 * lane;
    if (d >= a.d_head) continue;
    for (int i = 0; i < 2; ++i) {
      if (h + i >= work.num_heads) continue;
      float* part = PartOf(a, token, work.first_head + h + i, slot);
      part[d] = sums[turn][2 * i];
      part[d + 1] = sums[turn][2 * i + 1];
    }
  }
}

// What block BlockX(), BlockY() works on; its base is behind the token's position if that is
// nothing.
HEARTH_DEVICE SpanWork WorkOf(const AttendArgs& a, TokenPlace place) {
  const int visible = FirstVisible(place.position, a.window);
  const int group = a.n_heads / a.n_kv_heads, tiles = (group + kAttendHeads - 1) / kAttendHeads;
  SpanWork work{};
  work.table = place.table;
  work.kv_head = BlockY() / tiles;
  const int tile = BlockY() - work.kv_head * tiles;
  work.first_head = work.kv_head * group + tile * kAttendHeads;
  work.num_heads = Min(group - tile * kAttendHeads, kAttendHeads);
  work.base = (visible / kSpan + BlockX()) * kSpan;
  work.begin = Max(visible - work.base, 0);
  work.end = Min(place.position + 1 - work.base, kSpan);
  work.own = -1;
  return work;
}

// Everything of a span once q is on its way to shared memory and the first piece of V is fetched.
template <bool kHasOwn>
HEARTH_DEVICE void AttendSpan(const AttendArgs& a, const SpanWork& work, const SpanMemory& memory,
                              int token) {
  Barrier();
  const int first = 2 * Thread();
  float scores[2][kAttendHeads], top[kAttendHeads];
  const float none = FloatOf(0xff800000u);
  if (first + 1 >= work.begin && first < work.end) {
    ScoresOf<kHasOwn>(a, work, memory, first, scores);
  }
  for (int i = 0; i < 2; ++i) {
    const bool sees = first + i >= work.begin && first + i < work.end;
    for (int h = 0; h < kAttendHeads; ++h) scores[i][h] = sees ? scores[i][h] : none;
  }
  TopsOf(scores, memory.tops, top);
  StoreWeights(a, work, memory, first, scores, top);
  Barrier();
  StoreSums(a, work, memory, token, BlockX());
  ValuesOf(a, work, memory, token, BlockX());
}

// Shared memory: AttendSharedBytes(d_head). d_head is a multiple of 8.
HEARTH_DEVICE void AttendKernel(const AttendArgs& a) {
  const int token = BlockZ();
  const TokenPlace place = a.places[token];
  const SpanWork work = WorkOf(a, place);
  if (work.base > place.position) return;
  const SpanMemory memory = SpanMemoryOf(a.d_head);
  FetchPiece(a, work, 0, memory.values);
  CopyCommit();
  // Dimension by dimension, the heads side by side; heads that are not there are zero.
  const float* q = a.q + token * a.q_stride + int64_t{work.first_head} * a.d_head;
  for (int i = Thread(); i < kAttendHeads * a.d_head; i += kAttendThreads) {
    const int d = i / kAttendHeads, h = i % kAttendHeads;
    memory.q[i] = h < work.num_heads ? q[h * a.d_head + d] : 0.0f;
  }
  AttendSpan<false>(a, work, memory, token);
}

HEARTH_DEVICE int SpansOf(int position, int window) {
  return position / kSpan - FirstVisible(position, window) / kSpan + 1;
}

// One dimension of one head of one token: all spans merged.
HEARTH_DEVICE float CombinedAt(const CombineArgs& a, int token, int head, int d, int spans) {
  const float* parts = a.parts + (int64_t{token} * a.n_heads + head) * a.max_spans * (a.d_head + 2);
  float all_top = FloatOf(0xff800000u), all_weight = 0.0f, value = 0.0f;
  if (a.sinks != nullptr) {
    all_top = a.sinks[head];
    all_weight = 1.0f;
  }
  for (int s = 0; s < spans; ++s) {
    const float* part = parts + int64_t{s} * (a.d_head + 2);
    const float span_top = part[a.d_head];
    const float top = span_top <= all_top ? all_top : span_top;
    const float old_share = Exp(all_top - top), new_share = Exp(span_top - top);
    all_top = top;
    all_weight = Fma(all_weight, old_share, part[a.d_head + 1] * new_share);
    value = Fma(value, old_share, part[d] * new_share);
  }
  return value * (1.0f / all_weight);
}

// One head of one token: threads take dimensions. No shared memory.
HEARTH_DEVICE void CombineKernel(const CombineArgs& a) {
  const int head = BlockX(), token = BlockY();
  const int spans = SpansOf(a.places[token].position, a.window);
  for (int d = Thread(); d < a.d_head; d += kWarp) {
    a.out[token * a.out_stride + int64_t{head} * a.d_head + d] =
        CombinedAt(a, token, head, d, spans);
  }
}

}  // namespace hearth::cuda
