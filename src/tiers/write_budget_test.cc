// SPDX-License-Identifier: Apache-2.0
#include "tiers/write_budget.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(WriteBudget, EverythingIsWrittenWhileThereIsPlenty) {
  WriteBudget budget({.bytes_per_s = 10, .burst_bytes = 1000});
  for (uint64_t name = 0; name < 5; ++name) EXPECT_TRUE(budget.Take(name, 100, 0)) << name;
  // Exactly half is still plenty; one byte below it is not.
  EXPECT_TRUE(budget.Take(5, 1, 0));
  EXPECT_FALSE(budget.Take(6, 1, 0));
}

TEST(WriteBudget, TheLowerHalfIsForWhatComesAgain) {
  WriteBudget budget({.bytes_per_s = 0, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 600, 0));
  EXPECT_FALSE(budget.Take(2, 100, 0));
  EXPECT_TRUE(budget.Take(2, 100, 0));
  EXPECT_FALSE(budget.Take(3, 100, 0));
  EXPECT_TRUE(budget.Take(3, 300, 0));
  EXPECT_FALSE(budget.Take(3, 1, 0)) << "all is spent, whoever asks";
}

TEST(WriteBudget, TimeFillsItToTheBrimAndNotBeyond) {
  WriteBudget budget({.bytes_per_s = 100, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 1000, 0));
  EXPECT_FALSE(budget.Take(2, 1, 0));
  EXPECT_FALSE(budget.Take(3, 1, 4 * kSecond)) << "400 are less than half";
  EXPECT_TRUE(budget.Take(4, 500, 5 * kSecond));
  EXPECT_TRUE(budget.Take(5, 1, 3600 * kSecond));
  EXPECT_TRUE(budget.Take(6, 499, 3600 * kSecond));
  EXPECT_TRUE(budget.Take(7, 1, 3600 * kSecond));
  EXPECT_FALSE(budget.Take(8, 1, 3600 * kSecond)) << "an hour saves no more than 1000";
}

TEST(WriteBudget, AClockThatStandsStillOrGoesBackFillsNothing) {
  WriteBudget budget({.bytes_per_s = 100, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 1000, 10 * kSecond));
  EXPECT_FALSE(budget.Take(2, 1, 0));
  EXPECT_FALSE(budget.Take(3, 1, 10 * kSecond));
}

TEST(WriteBudget, WhatWasRefusedIsForgottenInTheEnd) {
  WriteBudget budget({.bytes_per_s = 0, .burst_bytes = 1000});
  EXPECT_TRUE(budget.Take(1, 600, 0));
  EXPECT_FALSE(budget.Take(7, 1, 0));
  for (uint64_t name = 100; name < 100 + 65'536; ++name) EXPECT_FALSE(budget.Take(name, 1, 0));
  EXPECT_FALSE(budget.Take(7, 1, 0));
  EXPECT_TRUE(budget.Take(7, 1, 0));
}

}  // namespace
}  // namespace hearth
