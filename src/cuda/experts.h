// SPDX-License-Identifier: Apache-2.0
// Around the products of experts in prompts: choices sorted by expert, their rows gathered.
#pragma once
#include "cuda/args.h"
#include "cuda/numbers.h"
namespace hearth::cuda {

// A thread takes whole experts and walks all choices, so that their order stays. Shared memory:
// num_experts + 1 words.
HEARTH_DEVICE void SortKernel(const SortArgs& a) {
  auto* begin = reinterpret_cast<int32_t*>(SharedMemory());
  for (int e = Thread(); e < a.num_experts; e += kRowThreads) {
    int count = 0;
    for (int i = 0; i < a.num_choices; ++i) count += a.experts[i] == e ? 1 : 0;
    begin[e + 1] = count;
  }
  Barrier();
  if (Thread() == 0) {
    begin[0] = 0;
    for (int e = 0; e < a.num_experts; ++e) begin[e + 1] += begin[e];
  }
  Barrier();
  for (int e = Thread(); e < a.num_experts; e += kRowThreads) {
    int slot = begin[e];
    for (int i = 0; i < a.num_choices; ++i) {
      if (a.experts[i] != e) continue;
      a.slot_of[i] = slot;
      a.choice_of[slot] = i;
      ++slot;
    }
  }
  for (int e = Thread(); e <= a.num_experts; e += kRowThreads) a.begin[e] = begin[e];
}

HEARTH_DEVICE void CopyRow(const ActRows& from, int64_t token, const ActRows& to, int64_t slot) {
  if (to.hi == nullptr) return;
  for (int i = 4 * Thread(); i < to.stride; i += 4 * kRowThreads) {
    *reinterpret_cast<uint32_t*>(to.hi + slot * to.stride + i) =
        *reinterpret_cast<const uint32_t*>(from.hi + token * from.stride + i);
    *reinterpret_cast<uint32_t*>(to.lo + slot * to.stride + i) =
        *reinterpret_cast<const uint32_t*>(from.lo + token * from.stride + i);
  }
  for (int i = Thread(); i < to.num_strips; i += kRowThreads) {
    to.scale[slot * to.num_strips + i] = from.scale[token * from.num_strips + i];
  }
}

// No shared memory.
HEARTH_DEVICE void GatherKernel(const GatherArgs& a) {
  const int64_t slot = BlockX(), token = a.choice_of[slot] / a.active;
  CopyRow(a.from, token, a.to, slot);
  CopyRow(a.super_from, token, a.super_to, slot);
  if (a.from_x == nullptr) return;
  for (int i = Thread(); i < a.d; i += kRowThreads) {
    a.to_x[slot * a.to_stride + i] = a.from_x[token * a.d + i];
  }
}

}  // namespace hearth::cuda
