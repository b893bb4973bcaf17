// SPDX-License-Identifier: Apache-2.0
#include "hub/progress.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Progress, HumanTimes) {
  EXPECT_EQ(HumanTime(7.9), "7 s");
  EXPECT_EQ(HumanTime(185), "3:05");
  EXPECT_EQ(HumanTime(7200), "2:00:00");
  EXPECT_EQ(HumanTime(1e30), HumanTime(1e9));
}

TEST(Progress, ALogIsSparse) {
  Progress progress(1'000'000'000, false);
  EXPECT_FALSE(progress.Update(0, 0));
  int lines = 0;
  std::string last;
  for (int i = 1; i <= 1000; ++i) {  // 100 s, ten times a second, 10 MB/s
    if (const auto line = progress.Update(i * 0.1, static_cast<uint64_t>(i) * 1'000'000)) {
      ++lines;
      last = *line;
    }
  }
  EXPECT_EQ(lines, 10);
  EXPECT_EQ(last, "100 %  1.00 GB of 1.00 GB  10 MB/s\n");
}

TEST(Progress, ABarShowsRateAndTimeLeft) {
  Progress progress(200'000'000, true, 80);
  EXPECT_TRUE(progress.Update(0, 0));
  EXPECT_FALSE(progress.Update(0.1, 1));
  const auto bar = progress.Update(2, 100'000'000);
  ASSERT_TRUE(bar);
  EXPECT_EQ(*bar,
            "\r[###############               ]  50 %  100 MB of 200 MB  50 MB/s  2 s left\x1b[K");
  // The end is always shown.
  EXPECT_TRUE(progress.Update(2.01, 200'000'000));
}

TEST(Progress, ABarNeverWrapsANarrowTerminal) {
  for (const int columns : {1, 10, 30, 50, 200}) {
    Progress progress(200'000'000, true, columns);
    progress.Update(0, 0);
    const auto bar = progress.Update(2, 100'000'000);
    ASSERT_TRUE(bar);
    EXPECT_LE(static_cast<int>(bar->size()) - 4, std::max(columns, 2)) << *bar;
  }
}

TEST(Progress, TheRateIsOfTheLastSeconds) {
  Progress progress(1'000'000, false);
  for (int i = 0; i <= 100; ++i) progress.Update(i, static_cast<uint64_t>(i) * 10);
  for (int i = 101; i <= 110; ++i) progress.Update(i, 1000 + static_cast<uint64_t>(i - 100) * 500);
  EXPECT_NEAR(progress.rate(), 500, 1);
  progress.Update(111, 5);  // a repair
  EXPECT_EQ(progress.rate(), 0);
}

}  // namespace
}  // namespace hearth
