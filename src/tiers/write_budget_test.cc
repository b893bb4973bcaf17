// SPDX-License-Identifier: Apache-2.0
#include "tiers/write_budget.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(WriteBudget, EverythingIsWrittenWhileThereIsPlenty) {
  WriteBudget budget({.bytes_per_s = 10, .burst_bytes = 1000});
  for (uint64_t name = 0; name < 5; ++name) EXPECT_TRUE(budget.Take(name, 0, 100, 0)) << name;
  // Exactly half is still plenty; one byte below it is not.
  EXPECT_TRUE(budget.Take(5, 0, 1, 0));
  EXPECT_FALSE(budget.Take(6, 0, 1, 0));
}

TEST(WriteBudget, TheLowerHalfIsForWhatComesAgain) {
  WriteBudget budget({.bytes_per_s = 0, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 0, 600, 0));
  EXPECT_FALSE(budget.Take(2, 0, 100, 0));
  EXPECT_TRUE(budget.Take(2, 0, 100, 0));
  EXPECT_FALSE(budget.Take(3, 0, 100, 0));
  EXPECT_TRUE(budget.Take(3, 0, 300, 0));
  EXPECT_FALSE(budget.Take(3, 0, 1, 0)) << "all is spent, whoever asks";
}

TEST(WriteBudget, TimeFillsItToTheBrimAndNotBeyond) {
  WriteBudget budget({.bytes_per_s = 100, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 0, 1000, 0));
  EXPECT_FALSE(budget.Take(2, 0, 1, 0));
  EXPECT_FALSE(budget.Take(3, 0, 1, 4 * kSecond)) << "400 are less than half";
  EXPECT_TRUE(budget.Take(4, 0, 500, 5 * kSecond));
  EXPECT_TRUE(budget.Take(5, 0, 1, 3600 * kSecond));
  EXPECT_TRUE(budget.Take(6, 0, 499, 3600 * kSecond));
  EXPECT_TRUE(budget.Take(7, 0, 1, 3600 * kSecond));
  EXPECT_FALSE(budget.Take(8, 0, 1, 3600 * kSecond)) << "an hour saves no more than 1000";
}

TEST(WriteBudget, InTheLowerHalfNobodyTakesTheSharesOfOthers) {
  WriteBudget budget({.bytes_per_s = 0, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 7, 10, 0));
  EXPECT_TRUE(budget.Take(2, 8, 510, 0)) << "there is plenty";
  for (const uint64_t name : {3, 4}) EXPECT_FALSE(budget.Take(name, 0, 1, 0)) << "the first time";
  EXPECT_FALSE(budget.Take(3, 8, 1, 0)) << "it had its half";
  EXPECT_TRUE(budget.Take(4, 7, 100, 0));
}

TEST(WriteBudget, WhatWasWrittenAnywayIsPaidFor) {
  WriteBudget budget({.bytes_per_s = 100, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 0, 1, 0));
  budget.Spend(2000);
  EXPECT_FALSE(budget.Take(2, 0, 1, 0));
  EXPECT_FALSE(budget.Take(2, 0, 1, 9 * kSecond));
  EXPECT_TRUE(budget.Take(2, 0, 1, 11 * kSecond));
}

TEST(WriteBudget, AClockThatStandsStillOrGoesBackFillsNothing) {
  WriteBudget budget({.bytes_per_s = 100, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 0, 1000, 10 * kSecond));
  EXPECT_FALSE(budget.Take(2, 0, 1, 0));
  EXPECT_FALSE(budget.Take(3, 0, 1, 10 * kSecond));
}

TEST(WriteBudget, WhatWasRefusedIsForgottenInTheEnd) {
  WriteBudget budget({.bytes_per_s = 0, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 0, 600, 0));
  EXPECT_FALSE(budget.Take(7, 0, 1, 0));
  for (uint64_t name = 100; name < 100 + 65'536; ++name) EXPECT_FALSE(budget.Take(name, 0, 1, 0));
  EXPECT_FALSE(budget.Take(7, 0, 1, 0));
  EXPECT_TRUE(budget.Take(7, 0, 1, 0));
}

}  // namespace
}  // namespace hearth
