// SPDX-License-Identifier: Apache-2.0
// The largest logits of a row, so that not the whole vocabulary goes to the host. A block takes a
// chunk of a row, or of what blocks before it left, and writes that chunk's largest in order.
#pragma once
#include "cuda/args.h"
#include "cuda/numbers.h"
namespace hearth::cuda {

// The falling order: by logit, equal ones by token.
HEARTH_DEVICE bool ComesFirst(Candidate a, Candidate b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}
HEARTH_DEVICE Candidate NoCandidate() { return {0x7fffffff, FloatOf(0xff800000u)}; }

HEARTH_DEVICE Candidate CandidateAt(const TopArgs& a, int64_t row, int i) {
  if (a.logits != nullptr) return {i, a.logits[row * a.stride + i]};
  const Candidate found = a.from[row * a.stride + i];
  return found.token < 0 ? NoCandidate() : found;
}

// The first of this thread's share of [begin, end) that comes after `last`.
HEARTH_DEVICE Candidate NextOf(const TopArgs& a, int64_t row, int begin, int end, Candidate last,
                               bool is_first) {
  Candidate best = NoCandidate();
  for (int i = begin + Thread(); i < end; i += kTopThreads) {
    const Candidate here = CandidateAt(a, row, i);
    if ((is_first || ComesFirst(last, here)) && ComesFirst(here, best)) best = here;
  }
  return best;
}

// The first of all threads'; every thread gets it. `places` has room for one of each warp, and is
// another one in the next call.
HEARTH_DEVICE Candidate FirstOfBlock(Candidate best, Candidate* places) {
  for (int mask = 16; mask >= 1; mask /= 2) {
    const Candidate other{static_cast<int32_t>(ShuffleXor(static_cast<uint32_t>(best.token), mask)),
                          FromLane(best.logit, mask)};
    if (ComesFirst(other, best)) best = other;
  }
  if (Thread() % kWarp == 0) places[Thread() / kWarp] = best;
  Barrier();
  for (int i = 0; i < kTopThreads / kWarp; ++i) {
    const Candidate other = places[i];
    if (ComesFirst(other, best)) best = other;
  }
  return best;
}

// Whether a row is no number: then its first logit is none, and its first candidate is -1.
HEARTH_DEVICE bool IsNoNumber(const TopArgs& a, int64_t row) {
  if (a.logits == nullptr) return a.from[row * a.stride].token < 0;
  const float first = a.logits[row * a.stride];
  return first != first;
}

// Shared memory: two candidates per warp.
HEARTH_DEVICE void TopKernel(const TopArgs& a) {
  const int64_t row = BlockY();
  const int top = a.tops[row], begin = BlockX() * kTopChunk, end = Min(begin + kTopChunk, a.n);
  if (top == 0) return;
  auto* places = reinterpret_cast<Candidate*>(SharedMemory());
  Candidate* to = a.to + row * a.to_stride + int64_t{BlockX()} * a.most;
  const bool is_none = IsNoNumber(a, row);
  Candidate best = NextOf(a, row, begin, end, NoCandidate(), true);
  for (int i = 0; i < top; ++i) {
    // Two sets of places: who is still reading one meets nobody who writes the next.
    const Candidate first = FirstOfBlock(best, places + i % 2 * (kTopThreads / kWarp));
    const bool is_left = first.token != NoCandidate().token && !is_none;
    if (Thread() == 0) to[i] = is_left ? first : Candidate{-1, FloatOf(0x7fc00000u)};
    if (first.token == best.token) best = NextOf(a, row, begin, end, first, false);
  }
}

constexpr int64_t TopSharedBytes() {
  return int64_t{2} * (kTopThreads / kWarp) * static_cast<int64_t>(sizeof(Candidate));
}
// Blocks that n candidates of a row take.
constexpr int TopChunks(int64_t n) { return static_cast<int>((n + kTopChunk - 1) / kTopChunk); }

}  // namespace hearth::cuda
