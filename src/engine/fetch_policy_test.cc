// SPDX-License-Identifier: Apache-2.0
#include "engine/fetch_policy.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(FetchPolicy, FetchesWhatIsFasterFetched) {
  FetchPolicy policy;
  EXPECT_TRUE(policy.Pays(100, 1 << 20, 0)) << "nothing was measured yet";
  policy.SetPrefill(1000);                   // 100 tokens are 100 ms
  policy.Observe(1 << 20, 50'000, true, 0);  // 50 ms a MiB
  EXPECT_TRUE(policy.Pays(100, 1 << 20, 0));
  EXPECT_FALSE(policy.Pays(100, 3 << 20, 0));
  policy.SetPrefill(100);
  EXPECT_FALSE(policy.Pays(100, 1 << 20, 0));
}

TEST(FetchPolicy, ATierThatFailsIsLeftAloneAndTriedAgainLater) {
  FetchPolicy policy;
  policy.SetPrefill(1000);
  int64_t now_us = 0;
  policy.Observe(1 << 20, 20'000, true, now_us);
  int loads = 0;
  while (policy.Pays(100, 1 << 20, now_us) && loads < 100) {
    policy.Observe(1 << 20, 20'000, false, now_us += 1000);
    ++loads;
  }
  EXPECT_GT(loads, 0) << "one failure is an accident";
  EXPECT_LT(loads, 10);
  EXPECT_FALSE(policy.Pays(100, 1 << 20, now_us + 5'000'000));
  EXPECT_TRUE(policy.Pays(100, 1 << 20, now_us + 20'000'000)) << "what was measured is old";
}

TEST(FetchPolicy, PatienceEndsWhereComputingWouldBeFaster) {
  FetchPolicy policy;
  EXPECT_EQ(policy.Patience(100, 2'000'000), 2'000'000);
  policy.SetPrefill(1000);
  EXPECT_EQ(policy.Patience(100, 2'000'000), 100'000);
  EXPECT_EQ(policy.Patience(100'000, 2'000'000), 2'000'000);
  EXPECT_EQ(policy.Patience(1, 2'000'000), 10'000);
}

}  // namespace
}  // namespace hearth
