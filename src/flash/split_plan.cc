// SPDX-License-Identifier: Apache-2.0
#include "flash/split_plan.h"

#include <algorithm>

#include "cuda/args.h"

namespace hearth::cuda {
namespace {

// More would leave the reduce more to read than it is worth.
constexpr int kMostSplits = 128;
// A launch that fills so much of the GPU is not cut; splits that reach so much of the best are
// enough. Both as in FlashAttention's own plan.
constexpr double kFull = 0.8, kEnough = 0.85;

double Efficiency(int blocks, int slots) {
  const int waves = (blocks + slots - 1) / slots;
  return static_cast<double>(blocks) / (static_cast<double>(waves) * slots);
}

}  // namespace

SplitPlan PlanSplits(int blocks, int slots, int positions) {
  const int tiles = std::max(1, (positions + kBlockTokens - 1) / kBlockTokens);
  const SplitPlan whole{1, tiles};
  slots = std::max(1, slots);
  if (blocks <= 0 || blocks >= kFull * slots) return whole;
  const int most = std::clamp(positions / kLeastSplit, 1, kMostSplits);
  const auto cut = [&](int wanted) -> SplitPlan {
    const int each = (tiles + wanted - 1) / wanted;
    return {(tiles + each - 1) / each, each};
  };
  double best = 0;
  for (int wanted = 1; wanted <= most; ++wanted) {
    best = std::max(best, Efficiency(blocks * cut(wanted).splits, slots));
  }
  for (int wanted = 1; wanted <= most; ++wanted) {
    const SplitPlan plan = cut(wanted);
    if (Efficiency(blocks * plan.splits, slots) >= kEnough * best) return plan;
  }
  return whole;
}

}  // namespace hearth::cuda
