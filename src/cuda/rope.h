// SPDX-License-Identifier: Apache-2.0
// After the projections of q, k and v: norms of heads, rope, and K and V into the blocks of the
// cache.
#pragma once
#include "cuda/args.h"
#include "cuda/numbers.h"
namespace hearth::cuda {

constexpr int kMaxHeadDim = 256;

constexpr int64_t KvHeadBytes(int d_head) { return 16 * (int64_t{4} * d_head + 8); }

// One KV head of the block that holds a position.
struct HeadInBlock {
  int16_t *k, *v;            // K is [d_head, 16], V is [16, d_head]
  float *k_scale, *v_scale;  // [16]
};
HEARTH_DEVICE HeadInBlock HeadAt(const KvPlace& kv, int table, int position, int kv_head,
                                 int d_head) {
  const int64_t block = kv.tables[table + position / kBlockTokens];
  uint8_t* at = kv.pool + block * kv.block_bytes + kv.layer_offset + kv_head * KvHeadBytes(d_head);
  auto* codes = reinterpret_cast<int16_t*>(at);
  auto* scales = reinterpret_cast<float*>(codes + 2 * kBlockTokens * d_head);
  return {codes, codes + kBlockTokens * d_head, scales, scales + kBlockTokens};
}

// What a head's values are multiplied by before its norm's gains; all 32 lanes call it.
HEARTH_DEVICE float HeadScale(const float* head, float eps, int d_head) {
  const float mean = SquaresOfWarp(head, d_head) / static_cast<float>(d_head);
  return 1.0f / Sqrt(mean + eps);
}

// One head from global to shared memory, by one warp: norm, if any.
HEARTH_DEVICE void LoadHead(const float* from, const float* norm, float eps, int d_head,
                            float* head) {
  const int lane = Thread();
  for (int i = lane; i < d_head; i += kWarp) head[i] = from[i];
  Barrier();
  if (norm == nullptr) return;
  const float scale = HeadScale(head, eps, d_head);
  Barrier();
  for (int i = lane; i < d_head; i += kWarp) head[i] = (head[i] * scale) * norm[i];
  Barrier();
}

HEARTH_DEVICE float NormedAt(const float* head, const float* norm, float scale, int i) {
  return norm != nullptr ? (head[i] * scale) * norm[i] : head[i];
}

// Value `d` of a head, normed and turned, from the head as it came out of its product. What
// LoadHead and TurnHead do, without shared memory.
HEARTH_DEVICE float TurnedAt(const RopeArgs& a, const float* head, const float* norm, float scale,
                             int token, int d) {
  if (d >= a.n_dims) return NormedAt(head, norm, scale, d);
  const int pairs = a.n_dims / 2;
  const bool is_first = a.neighbours != 0 ? d % 2 == 0 : d < pairs;
  const int step = a.neighbours != 0 ? 1 : pairs, at = is_first ? d : d - step;
  const int pair = a.neighbours != 0 ? at / 2 : at;
  const float first = NormedAt(head, norm, scale, at);
  const float second = NormedAt(head, norm, scale, at + step);
  const float cos = a.cos[int64_t{token} * pairs + pair];
  const float sin = a.sin[int64_t{token} * pairs + pair];
  return is_first ? Fma(first, cos, -(second * sin)) : Fma(second, cos, first * sin);
}

HEARTH_DEVICE void TurnHead(const RopeArgs& a, int token, float* head) {
  const int pairs = a.n_dims / 2;
  for (int i = Thread(); i < pairs; i += kWarp) {
    float& first = head[a.neighbours != 0 ? 2 * i : i];
    float& second = head[a.neighbours != 0 ? 2 * i + 1 : i + pairs];
    const float cos = a.cos[int64_t{token} * pairs + i], sin = a.sin[int64_t{token} * pairs + i];
    const float old_first = first, old_second = second;
    first = Fma(old_first, cos, -(old_second * sin));
    second = Fma(old_second, cos, old_first * sin);
  }
  Barrier();
}

// A head to int16 codes `step` apart; returns the scale. A head that holds no
// number gets a NaN scale and zeros.
HEARTH_DEVICE float StoreHead(const float* head, int d_head, int16_t* codes, int step) {
  constexpr float kMax = 32767.0f;
  const int lane = Thread() % kWarp;
  uint32_t top = 0;
  for (int i = lane; i < d_head; i += kWarp) {
    const uint32_t magnitude = BitsOf(head[i]) & 0x7fffffffu;
    top = magnitude > top ? magnitude : top;
  }
  top = LargestOfWarp(top);
  const bool finite = top < 0x7f800000u;
  const float amax = FloatOf(top);
  const float inverse = finite && amax >= 0x1p-100f ? kMax / amax : 0.0f;
  for (int i = lane; i < d_head; i += kWarp) {
    codes[i * step] = static_cast<int16_t>(finite ? RoundToInt(head[i] * inverse) : 0);
  }
  return finite ? amax / kMax : FloatOf(0x7fc00000u);
}

// Shared memory: d_head floats. One warp.
HEARTH_DEVICE void RopeKernel(const RopeArgs& a) {
  auto* head = reinterpret_cast<float*>(SharedMemory());
  const int token = BlockY(), slot = BlockX();
  if (slot < a.n_heads) {
    float* q = a.q + token * a.q_stride + slot * a.d_head;
    LoadHead(q, a.q_norm, a.eps, a.d_head, head);
    TurnHead(a, token, head);
    for (int i = Thread(); i < a.d_head; i += kWarp) q[i] = head[i];
    return;
  }
  const int kv_head = slot - a.n_heads;
  const TokenPlace place = a.places[token];
  const HeadInBlock to = HeadAt(a.kv, place.table, place.position, kv_head, a.d_head);
  const int lane = place.position % kBlockTokens;
  const int64_t at = token * a.kv_stride + kv_head * a.d_head;
  LoadHead(a.k + at, a.k_norm, a.eps, a.d_head, head);
  TurnHead(a, token, head);
  const float k_scale = StoreHead(head, a.d_head, to.k + lane, kBlockTokens);
  const float v_scale = StoreHead(a.v + at, a.d_head, to.v + lane * a.d_head, 1);
  if (Thread() == 0) {
    to.k_scale[lane] = k_scale;
    to.v_scale[lane] = v_scale;
  }
}

}  // namespace hearth::cuda
