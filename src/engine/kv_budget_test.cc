// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_budget.h"

#include <gtest/gtest.h>

#include "kv/kv_space.h"

namespace hearth {
namespace {

KvLayout Layout(std::vector<int> windows, int64_t block_bytes) {
  KvLayout layout;
  for (const int window : windows) {
    layout.groups.push_back({.window = window, .block_bytes = block_bytes});
  }
  return layout;
}

KvBudget GptOss(int64_t bytes) {
  KvBudget budget;
  budget.bytes = bytes;
  budget.layout = Layout({0, 128}, 405'504);  // 12 layers each
  return budget;
}

TEST(KvBudget, NeverMoreThanTheBudgetAndNotMuchLess) {
  for (const int64_t mib : {64, 100, 300, 1000, 4000, 16'000, 300'000}) {
    const KvBudget budget = GptOss(mib << 20);
    Result<KvLayout> layout = PlanKv(budget);
    ASSERT_TRUE(layout.ok()) << mib << ": " << layout.status().message();
    const int full = layout->groups[0].num_blocks, window = layout->groups[1].num_blocks;
    EXPECT_EQ(layout->total_bytes(), (int64_t{full} + window) * 405'504);
    EXPECT_LE(layout->total_bytes(), budget.bytes) << mib;
    EXPECT_GE(layout->total_bytes(), budget.bytes - 40 * 405'504) << mib;
    EXPECT_GT(full, window / 2);
  }
}

TEST(KvBudget, WindowBlocksSufficeForAllThatRun) {
  Result<KvLayout> layout = PlanKv(GptOss(int64_t{16} << 30));
  ASSERT_TRUE(layout.ok());
  const KvSpace kv(*layout, KvPolicy());
  const int window = layout->groups[1].num_blocks;
  EXPECT_GE(window, 256 * kv.BlocksFor(1, 100'000, 1));
  // And beside them for a checkpoint every 512 tokens of what can be cached.
  const int64_t max_tokens = int64_t{layout->groups[0].num_blocks} * layout->block_tokens;
  EXPECT_GE(window - 256 * 9, max_tokens / 512 * 8);
}

TEST(KvBudget, AModelWithoutWindowsPutsAllIntoOneGroup) {
  KvBudget budget;
  budget.bytes = 100 << 20;
  budget.layout = Layout({0}, 1 << 20);
  Result<KvLayout> layout = PlanKv(budget);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->groups[0].num_blocks, 100);
}

TEST(KvBudget, NoMoreThanEverybodysWholeContext) {
  KvBudget budget;
  budget.bytes = int64_t{1} << 40;
  budget.layout = Layout({0}, 1024);
  budget.max_context = 160;
  budget.max_sequences = 10;
  Result<KvLayout> layout = PlanKv(budget);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->groups[0].num_blocks, 100);
}

// What the two groups of gpt-oss got before groups were a list.
TEST(KvBudget, TwoGroupsGetWhatTheyAlwaysGot) {
  Result<KvLayout> layout = PlanKv(GptOss(int64_t{4000} << 20));
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->groups[0].num_blocks, 5274);
  EXPECT_EQ(layout->groups[1].num_blocks, 5069);
}

TEST(KvBudget, SharesOutAmongSeveralWindowsAndLongerBlocks) {
  for (const bool has_full : {true, false}) {
    KvBudget budget;
    budget.bytes = int64_t{1} << 30;
    budget.layout = Layout(has_full ? std::vector{0, 128, 1024} : std::vector{128, 1024}, 100'000);
    budget.layout.block_tokens = 32;
    budget.max_sequences = 8;
    Result<KvLayout> layout = PlanKv(budget);
    ASSERT_TRUE(layout.ok()) << layout.status().message();
    EXPECT_LE(layout->total_bytes(), budget.bytes);
    EXPECT_GE(layout->total_bytes(), budget.bytes - 100 * 100'000);
    const KvSpace kv(*layout, KvPolicy());
    for (int group = has_full; group < layout->num_groups(); ++group) {
      EXPECT_GE(layout->group(group).num_blocks, 8 * kv.BlocksFor(group, 100'000, 1)) << group;
    }
  }
}

TEST(KvBudget, BlocksMayBeLongerThanWhatLiesBetweenCheckpoints) {
  KvBudget budget;
  budget.bytes = int64_t{1} << 30;
  budget.layout = Layout({0}, 1 << 20);
  budget.layout.block_tokens = 512;
  Result<KvLayout> layout = PlanKv(budget);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->groups[0].num_blocks, 1024);
}

TEST(KvBudget, TooLittleIsRefusedWithTheNumbers) {
  Result<KvLayout> layout = PlanKv(GptOss(10 << 20));
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.status().code(), Code::kExhausted);
  EXPECT_NE(layout.status().message().find("10.0 MiB"), std::string::npos);
}

}  // namespace
}  // namespace hearth
