// SPDX-License-Identifier: Apache-2.0
// Which experts a token goes to, and with which weights.
#pragma once
#include "cuda/args.h"
#include "cuda/floats.h"
#include "cuda/numbers.h"
#include "cuda/rows.h"
namespace hearth::cuda {

// Softmax in place, sums in ascending order: one lane does it, n is small.
HEARTH_DEVICE void SoftmaxAlone(float* values, int n) {
  float top = values[0];
  for (int i = 0; i < n; ++i) {
    if (!(values[i] <= top)) top = values[i];
  }
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    values[i] = Exp(values[i] - top);
    sum += values[i];
  }
  for (int i = 0; i < n; ++i) values[i] = values[i] / sum;
}

// A NaN counts as the smallest there is.
HEARTH_DEVICE float RouteKey(float x) { return x == x ? x : FloatOf(0xff800000u); }

// A place in the falling order of experts: by key, equal ones by index.
struct Ranked {
  float key;
  int expert;
};
HEARTH_DEVICE bool Before(Ranked a, Ranked b) {
  return a.key != b.key ? a.key > b.key : a.expert < b.expert;
}

// The first of those after `last`, of all lanes; every lane gets it. `none` stands for "no expert".
HEARTH_DEVICE Ranked NextExpert(const float* row, int n, Ranked last, bool is_first) {
  Ranked best{FloatOf(0xff800000u), n};
  for (int e = Thread(); e < n; e += kWarp) {
    const Ranked here{RouteKey(row[e]), e};
    if ((is_first || Before(last, here)) && Before(here, best)) best = here;
  }
  for (int mask = 16; mask >= 1; mask /= 2) {
    const Ranked other{FromLane(best.key, mask),
                       static_cast<int>(ShuffleXor(static_cast<uint32_t>(best.expert), mask))};
    if (Before(other, best)) best = other;
  }
  return best;
}

// The choice for one row, by the first warp of a block whose threads all call it.
HEARTH_DEVICE void RouteRow(const RouteArgs& a, float* row, int64_t token) {
  float* weights = a.weights + token * a.active;
  if (a.softmax_first != 0 && Thread() == 0) SoftmaxAlone(row, a.num_experts);
  Barrier();
  if (Thread() >= kWarp) return;
  Ranked last{0.0f, 0};
  for (int i = 0; i < a.active; ++i) {
    last = NextExpert(row, a.num_experts, last, i == 0);
    if (Thread() == 0) {
      a.experts[token * a.active + i] = last.expert;
      weights[i] = row[last.expert];
    }
  }
  if (Thread() != 0) return;
  if (a.softmax_first == 0) {
    SoftmaxAlone(weights, a.active);
  } else if (a.renormalise != 0) {
    float sum = 0.0f;
    for (int i = 0; i < a.active; ++i) sum += weights[i];
    for (int i = 0; i < a.active; ++i) weights[i] = weights[i] / sum;
  }
}

// No shared memory; the row of logits is the warp's own.
HEARTH_DEVICE void RouteKernel(const RouteArgs& a) {
  const int64_t token = BlockX();
  RouteRow(a, a.logits + token * a.stride, token);
}

// Logits of all experts from a row in shared memory, sixteen experts at a time, in the order that
// FloatMatmulKernel has.
template <WeightKind kKind>
HEARTH_DEVICE void RouterLogits(const NormRouteArgs& a, const float* row, float* logits) {
  const int lane = Thread() % 16;
  for (int first = 0; first < a.route.num_experts; first += kPanelRows) {
    const uint8_t* panel = a.panels + first / kPanelRows * a.panel_bytes;
    float sum = 0.0f;
    for (int column = lane; column < a.norm.d; column += 16) {
      sum = Fma(FloatAt<kKind>(panel, Thread() / 16, column), row[column], sum);
    }
    sum = JoinLanes(sum);
    const int expert = first + Thread() / 16;
    if (lane == 0) logits[expert] = a.bias != nullptr ? sum + a.bias[expert] : sum;
  }
}

constexpr int64_t NormRouteSharedBytes(int d, int num_experts) {
  return int64_t{4} * (d + 1 + (num_experts + kPanelRows - 1) / kPanelRows * kPanelRows);
}

// Shared memory: NormRouteSharedBytes.
HEARTH_DEVICE void NormRouteKernel(const NormRouteArgs& a) {
  NormKernel(a.norm);  // leaves the normed row in shared memory, behind a barrier
  auto* row = reinterpret_cast<float*>(SharedMemory());
  float* logits = row + a.norm.d + 1;
  if (a.kind == WeightKind::kF32) {
    RouterLogits<WeightKind::kF32>(a, row, logits);
  } else if (a.kind == WeightKind::kF16) {
    RouterLogits<WeightKind::kF16>(a, row, logits);
  } else {
    RouterLogits<WeightKind::kBf16>(a, row, logits);
  }
  Barrier();
  RouteRow(a.route, logits, BlockX());
}

}  // namespace hearth::cuda
