// SPDX-License-Identifier: Apache-2.0
// Into how many splits a sequence is cut, so that a GPU's processors are busy.
#pragma once
namespace hearth::cuda {

// Positions of a split, at least: below that merging costs more than it gains.
inline constexpr int kLeastSplit = 256;

struct SplitPlan {
  int splits = 1;
  int split_tiles = 1;  // tiles of sixteen positions, of each but the last
};
// `blocks`: of the launch without splits. `slots`: blocks that the GPU holds at once. `positions`:
// of the longest sequence. The fewest splits whose last wave is nearly as full as the best's.
SplitPlan PlanSplits(int blocks, int slots, int positions);

}  // namespace hearth::cuda
