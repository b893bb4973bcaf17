// SPDX-License-Identifier: Apache-2.0
#include "kv/tenant_shares.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr uint32_t kGreedy = 1, kQuiet = 2;

TEST(TenantShares, TheOthersAreSparedWhileOneHasMoreThanItsShare) {
  TenantShares shares(1000);
  shares.Add(kQuiet, 100);
  shares.Add(kGreedy, 500);
  EXPECT_FALSE(shares.IsOver(kGreedy)) << "its share, no more";
  EXPECT_FALSE(shares.Spares(kQuiet)) << "all are within: the oldest goes";
  shares.Add(kGreedy, 1);
  EXPECT_TRUE(shares.Spares(kQuiet));
  EXPECT_TRUE(shares.Spares(3)) << "one that has nothing yet";
  EXPECT_FALSE(shares.Spares(kGreedy)) << "its own goes";
  shares.Remove(kGreedy, 1);
  EXPECT_FALSE(shares.Spares(kQuiet));
}

TEST(TenantShares, CountsWhatIsThere) {
  TenantShares shares(1000);
  shares.Add(kQuiet, 100);
  shares.Add(kQuiet, 50);
  EXPECT_EQ(shares.bytes(kQuiet), 150);
  shares.Remove(kQuiet, 150);
  EXPECT_EQ(shares.bytes(kQuiet), 0);
  EXPECT_EQ(shares.num_tenants(), 0u) << "nobody is remembered for nothing";
  shares.Remove(kQuiet, 10);
  EXPECT_EQ(shares.bytes(kQuiet), 0);
}

TEST(TenantBudget, WhoeverIsAloneHasAll) {
  TenantBudget budget(1000, 1'000'000);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(budget.Has(kGreedy, i));
    budget.Spend(kGreedy, 500, i);
  }
}

TEST(TenantBudget, BesideOthersEachHasItsOwn) {
  TenantBudget budget(1000, 1'000'000);
  budget.Spend(kQuiet, 100, 0);
  budget.Spend(kGreedy, 900, 0);
  EXPECT_TRUE(budget.Has(kGreedy, 0));
  budget.Spend(kGreedy, 200, 0);
  EXPECT_FALSE(budget.Has(kGreedy, 0));
  EXPECT_TRUE(budget.Has(kQuiet, 0)) << "a greedy neighbour takes none of it";
  EXPECT_FALSE(budget.Has(kGreedy, 99'000)) << "it is refilled in time";
  budget.Spend(kQuiet, 500, 99'000);
  EXPECT_TRUE(budget.Has(kGreedy, 101'000));
}

TEST(TenantBudget, OthersThatHaveGoneAreNobody) {
  TenantBudget budget(1000, 1'000'000);
  budget.Spend(kQuiet, 100, 0);
  budget.Spend(kGreedy, 2000, 0);
  EXPECT_FALSE(budget.Has(kGreedy, 50'000));
  EXPECT_TRUE(budget.Has(kGreedy, 150'000)) << "the other one has all of its allowance again";
}

TEST(TenantBudget, DebtsEnd) {
  TenantBudget budget(1000, 1'000'000);
  budget.Spend(kGreedy, 1'000'000, 0);
  budget.Spend(kQuiet, 900, 900'000);
  EXPECT_FALSE(budget.Has(kGreedy, 900'000));
  EXPECT_TRUE(budget.Has(kGreedy, 1'001'000)) << "two allowances at most";
}

TEST(TenantBudget, AnotherSizeKeepsTheShares) {
  TenantBudget budget(1000, 1'000'000);
  budget.Spend(kGreedy, 500, 0);
  budget.Spend(kQuiet, 1, 0);
  budget.Resize(100);
  budget.Spend(kGreedy, 49, 0);
  EXPECT_TRUE(budget.Has(kGreedy, 0));
  budget.Spend(kGreedy, 2, 0);
  EXPECT_FALSE(budget.Has(kGreedy, 0));
}

}  // namespace
}  // namespace hearth
