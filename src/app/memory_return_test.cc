// SPDX-License-Identifier: Apache-2.0
#include "app/memory_return.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace hearth {
namespace {

constexpr int64_t kWorth = FreedWatch::kWorth;

TEST(FreedWatch, IsDueOnceMuchWasFreedAndAMomentHasPassed) {
  FreedWatch watch;
  EXPECT_FALSE(watch.IsDue(0));
  EXPECT_FALSE(watch.IsDue(kWorth));
  EXPECT_FALSE(watch.IsDue(1)) << "too little";
  EXPECT_FALSE(watch.IsDue(1));
  EXPECT_FALSE(watch.IsDue(0)) << "enough, but just now";
  EXPECT_TRUE(watch.IsDue(0));
  for (int i = 1; i < 20; ++i) {
    EXPECT_EQ(watch.IsDue(0), i == FreedWatch::kRest) << i << ": once more for what was freed late";
  }
}

TEST(FreedWatch, TakesWhatIsHeldAgainAsUsed) {
  FreedWatch watch;
  watch.IsDue(2 * kWorth);
  EXPECT_FALSE(watch.IsDue(0));
  EXPECT_FALSE(watch.IsDue(2 * kWorth)) << "taken again within the moment";
  EXPECT_FALSE(watch.IsDue(0));
  EXPECT_TRUE(watch.IsDue(0));
}

TEST(FreedWatch, RestsBetweenTwo) {
  FreedWatch watch;
  int num_due = 0;
  for (int i = 0; i < 100; ++i) num_due += watch.IsDue(i % 3 == 0 ? 2 * kWorth : 0) ? 1 : 0;
  EXPECT_GT(num_due, 5);
  EXPECT_LE(num_due, 2 * 100 / FreedWatch::kRest);
}

TEST(MemoryReturn, LooksEverySecondAndEndsAtOnce) {
  std::atomic<int64_t> held = 2 * kWorth;
  std::atomic<int> num_looks = 0, num_returns = 0;
  const auto began = std::chrono::steady_clock::now();
  {
    const MemoryReturn memory(
        [&] {
          if (++num_looks == 1) return held.load();
          return int64_t{0};
        },
        [&] { ++num_returns; });
    while (num_returns == 0 && std::chrono::steady_clock::now() - began < std::chrono::minutes(1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  EXPECT_EQ(num_returns, 1);
  EXPECT_GE(num_looks, 3);
}

}  // namespace
}  // namespace hearth
