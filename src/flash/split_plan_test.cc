// SPDX-License-Identifier: Apache-2.0
#include "flash/split_plan.h"

#include <gtest/gtest.h>

namespace hearth::cuda {
namespace {

TEST(SplitPlan, ShortSequencesAreNotCut) {
  for (const int positions : {0, 1, 16, 255, 511}) {
    const SplitPlan plan = PlanSplits(8, 512, positions);
    EXPECT_EQ(plan.splits, 1) << positions;
    EXPECT_GE(plan.split_tiles * 16, positions);
  }
}

TEST(SplitPlan, AFullGpuIsNotSplitFurther) {
  EXPECT_EQ(PlanSplits(410, 512, 1 << 17).splits, 1);
  EXPECT_EQ(PlanSplits(5000, 512, 1 << 17).splits, 1);
}

TEST(SplitPlan, FewBlocksOverALongSequenceFillTheGpu) {
  // 8 blocks on 128 x 4 slots: 64 splits fill one wave; 55 reach 85 % of it.
  const SplitPlan plan = PlanSplits(8, 512, 1 << 17);
  EXPECT_GE(8 * plan.splits, 0.85 * 512);
  EXPECT_LE(8 * plan.splits, 512);
}

// One block more than a wave holds would leave a second wave nearly empty.
TEST(SplitPlan, TheLastWaveCounts) {
  const SplitPlan plan = PlanSplits(60, 100, 4096);
  const int blocks = 60 * plan.splits, waves = (blocks + 99) / 100;
  EXPECT_GE(static_cast<double>(blocks) / (waves * 100), 0.85);
  EXPECT_GT(plan.splits, 1);
}

TEST(SplitPlan, EveryPositionIsInOneSplitAndNoneIsSmallerThanTheFloor) {
  for (const int blocks : {1, 3, 8, 40}) {
    for (const int slots : {1, 56, 512, 528}) {
      for (int positions = 1; positions < 9000; positions += 97) {
        const SplitPlan plan = PlanSplits(blocks, slots, positions);
        const int tiles = (positions + 15) / 16;
        EXPECT_GE(plan.splits * plan.split_tiles, tiles);
        EXPECT_LT((plan.splits - 1) * plan.split_tiles, tiles);  // none is empty
        if (plan.splits > 1) {
          EXPECT_GE(plan.split_tiles * 16, kLeastSplit);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::cuda
