// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_budget.h"

#include <gtest/gtest.h>

#include "kv/kv_space.h"

namespace hearth {
namespace {

KvBudget GptOss(int64_t bytes) {
  KvBudget budget;
  budget.bytes = bytes;
  budget.full_block_bytes = budget.window_block_bytes = 405'504;  // 12 layers each
  budget.window = 128;
  return budget;
}

TEST(KvBudget, NeverMoreThanTheBudgetAndNotMuchLess) {
  for (const int64_t mib : {64, 100, 300, 1000, 4000, 16'000, 300'000}) {
    const KvBudget budget = GptOss(mib << 20);
    Result<KvBlocks> blocks = PlanKv(budget);
    ASSERT_TRUE(blocks.ok()) << mib << ": " << blocks.status().message();
    EXPECT_EQ(blocks->bytes, (int64_t{blocks->full} + blocks->window) * 405'504);
    EXPECT_LE(blocks->bytes, budget.bytes) << mib;
    EXPECT_GE(blocks->bytes, budget.bytes - 40 * 405'504) << mib;
    EXPECT_GT(blocks->full, blocks->window / 2);
  }
}

TEST(KvBudget, WindowBlocksSufficeForAllThatRun) {
  Result<KvBlocks> blocks = PlanKv(GptOss(int64_t{16} << 30));
  ASSERT_TRUE(blocks.ok());
  KvLayout layout;
  layout.full = {405'504, blocks->full, 0};
  layout.window = {405'504, blocks->window, 128};
  const KvSpace kv(layout, KvPolicy());
  EXPECT_GE(blocks->window, 256 * kv.BlocksFor(KvGroup::kWindow, 100'000, 1));
  // And beside them for a cut every 512 tokens of what can be cached.
  EXPECT_GE(blocks->window - 256 * 9, blocks->max_tokens / 512 * 8);
}

TEST(KvBudget, AModelWithoutWindowsPutsAllIntoOneGroup) {
  KvBudget budget;
  budget.bytes = 100 << 20;
  budget.full_block_bytes = 1 << 20;
  Result<KvBlocks> blocks = PlanKv(budget);
  ASSERT_TRUE(blocks.ok());
  EXPECT_EQ(blocks->full, 100);
  EXPECT_EQ(blocks->window, 0);
}

TEST(KvBudget, NoMoreThanEverybodysWholeContext) {
  KvBudget budget;
  budget.bytes = int64_t{1} << 40;
  budget.full_block_bytes = 1024;
  budget.max_context = 160;
  budget.max_sequences = 10;
  Result<KvBlocks> blocks = PlanKv(budget);
  ASSERT_TRUE(blocks.ok());
  EXPECT_EQ(blocks->full, 100);
}

TEST(KvBudget, TooLittleIsRefusedWithTheNumbers) {
  Result<KvBlocks> blocks = PlanKv(GptOss(10 << 20));
  ASSERT_FALSE(blocks.ok());
  EXPECT_EQ(blocks.status().code(), Code::kExhausted);
  EXPECT_NE(blocks.status().message().find("10.0 MiB"), std::string::npos);
}

}  // namespace
}  // namespace hearth
