// SPDX-License-Identifier: Apache-2.0
#include "server/models/load_debts.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(LoadDebts, TimeForgivesThem) {
  LoadDebts debts;
  EXPECT_EQ(debts.OwedUs("ada", 0), 0);
  debts.Charge("ada", 100, 1000, 5000);
  EXPECT_EQ(debts.OwedUs("ada", 5000), 100);
  EXPECT_EQ(debts.OwedUs("bob", 5000), 0);
  EXPECT_EQ(debts.OwedUs("ada", 5000 + 800), 50);
  EXPECT_EQ(debts.OwedUs("ada", 5000 + 1584), 1);
  EXPECT_EQ(debts.OwedUs("ada", 5000 + 1600), 0);
  EXPECT_EQ(debts.OwedUs("ada", 1'000'000), 0);
}

TEST(LoadDebts, AddUpToALimit) {
  LoadDebts debts;
  debts.Charge("ada", 600, 1000, 0);
  debts.Charge("ada", 600, 1000, 0);
  EXPECT_EQ(debts.OwedUs("ada", 0), 1000);
  debts.Charge("ada", 600, 300, 160);
  EXPECT_EQ(debts.OwedUs("ada", 160), 990) << "a lower limit forgives nothing";
}

TEST(LoadDebts, WhoWasServedIsKnownWhileItOwes) {
  LoadDebts debts;
  debts.Serve("ada", 10);
  EXPECT_EQ(debts.ServedUs("ada", 10), -1);
  debts.Charge("ada", 100, 1000, 10);
  EXPECT_EQ(debts.ServedUs("ada", 10), -1);
  debts.Serve("ada", 20);
  EXPECT_EQ(debts.ServedUs("ada", 30), 20);
  EXPECT_EQ(debts.ServedUs("ada", 10 + 1600), -1);
}

// Addresses may be clients, and there are many.
TEST(LoadDebts, ForgivenOnesAreForgotten) {
  LoadDebts debts;
  for (int i = 0; i < 10'000; ++i) debts.Charge(std::to_string(i), 100, 1000, i * 100);
  EXPECT_LE(debts.size(), 17);
}

}  // namespace
}  // namespace hearth
