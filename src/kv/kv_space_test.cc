// SPDX-License-Identifier: Apache-2.0
// Random sequences over tiny pools against a naive model, in every kind of model.
#include "kv/kv_space.h"

#include <gtest/gtest.h>

#include "testing/kv_driver.h"
#include "testing/kv_scenarios.h"
namespace hearth {
namespace {

using testing::KvDriver;
using testing::KvDriverOptions;
using testing::SmallLayout;

void RunSeeds(KvDriverOptions options, int num_seeds) {
  for (int seed = 1; seed <= num_seeds; ++seed) {
    options.seed = seed;
    ASSERT_EQ(KvDriver(options).Run(), "") << "seed " << seed;
  }
}

TEST(KvSpaceRandom, BothGroups) {
  for (const int window : {1, 2, 8, 16, 17, 18, 128}) {
    for (const int blocks : {9, 20, 40}) {
      SCOPED_TRACE(::testing::Message() << "window " << window << ", " << blocks << " blocks");
      RunSeeds({.layout = SmallLayout(blocks, blocks, window)}, 12);
      RunSeeds({.layout = SmallLayout(blocks, 12, window)}, 12);
    }
  }
}

TEST(KvSpaceRandom, FullOnly) { RunSeeds({.layout = SmallLayout(25, 0, 0)}, 60); }
TEST(KvSpaceRandom, WindowOnly) {
  for (const int window : {8, 16, 128}) RunSeeds({.layout = SmallLayout(0, 25, window)}, 40);
}

// Windows of several lengths, with and without layers that see everything, and blocks of other
// sizes.
TEST(KvSpaceRandom, AnyGroupsAndBlockSizes) {
  for (const int block_tokens : {1, 4, 16, 32}) {
    for (const bool has_full : {true, false}) {
      for (const bool is_ample : {true, false}) {
        KvLayout layout;
        layout.block_tokens = block_tokens;
        const int blocks = (is_ample ? 16'000 : 480) / block_tokens;
        if (has_full) layout.groups.push_back({0, 64, blocks});
        for (const int window : {40, 8, 100}) layout.groups.push_back({window, 64, blocks});
        SCOPED_TRACE(::testing::Message() << "blocks of " << block_tokens);
        RunSeeds({.layout = layout, .num_actions = 150, .is_ample = is_ample}, 15);
      }
    }
  }
}

TEST(KvSpaceRandom, NothingIsForgottenWhileItFits) {
  for (const auto& layout : {SmallLayout(4000, 4000, 40), SmallLayout(4000, 0, 0),
                             SmallLayout(0, 4000, 40), SmallLayout(4000, 4000, 128)}) {
    RunSeeds({.layout = layout, .is_ample = true}, 25);
  }
}

TEST(KvSpaceRandom, CollidingKeysNeverReturnOthersTokens) {
  for (const int key_bits : {1, 2, 4, 6}) {
    RunSeeds({.layout = SmallLayout(30, 30, 24), .policy = {.key_bits = key_bits}}, 40);
    RunSeeds({.layout = SmallLayout(0, 30, 24), .policy = {.key_bits = key_bits}}, 20);
  }
}

TEST(KvSpaceRandom, TightQuotas) {
  RunSeeds({.layout = SmallLayout(30, 20, 24), .policy = {.tenant_share = 0.2}}, 40);
}

TEST(KvSpace, Scenarios) {
  for (const testing::KvScenario& scenario : testing::kKvScenarios) {
    EXPECT_EQ(scenario.run(), "") << scenario.name;
  }
}

}  // namespace
}  // namespace hearth
