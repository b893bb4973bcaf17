// SPDX-License-Identifier: Apache-2.0
#include "platform/part_time.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr int64_t kMs = 1'000'000;

// A worker beside `others` processors' worth of busy threads, looked at for every 100 us of its
// loops. What it worked, as a share of `ms` milliseconds.
double ShareWorked(PartTime& time, double others, int64_t ms, int64_t& now, double& spent) {
  const int64_t begin = now;
  int64_t worked = 0;
  while (now - begin < ms * kMs) {
    const bool rests = time.ShouldRest(now, [&] { return static_cast<int64_t>(spent); });
    const int64_t took = rests ? PartTime::kRest : kMs / 10;
    if (!rests) worked += took;
    spent += others * static_cast<double>(took) + (rests ? 0 : static_cast<double>(took));
    now += took;
  }
  return static_cast<double>(worked) / static_cast<double>(now - begin);
}

TEST(PartTime, WorksForTheFractionThatIsPaidFor) {
  for (const double fraction : {0.25, 0.5, 0.9}) {
    PartTime time(1 + fraction);
    int64_t now = 17 * kMs;
    double spent = 3e9;
    ShareWorked(time, 1, 500, now, spent);
    const double share = ShareWorked(time, 1, 2000, now, spent);
    EXPECT_NEAR(share, PartTime::kSpent * (1 + fraction) - 1, 0.02);
  }
}

TEST(PartTime, WithoutAQuotaItNeverRests) {
  PartTime time(0);
  EXPECT_FALSE(time.ShouldRest(5 * kMs, []() -> int64_t {
    ADD_FAILURE();
    return 0;
  }));
}

TEST(PartTime, OthersThatSpendMoreLeaveLess) {
  PartTime time(1.5);
  int64_t now = 0;
  double spent = 0;
  ShareWorked(time, 1.3, 500, now, spent);
  EXPECT_NEAR(ShareWorked(time, 1.3, 2000, now, spent), 1.5 * PartTime::kSpent - 1.3, 0.03);
  ShareWorked(time, 1.6, 500, now, spent);
  EXPECT_LT(ShareWorked(time, 1.6, 2000, now, spent), 0.03);
  // What was spent too much long ago is not held against it for long.
  ShareWorked(time, 0.4, 100, now, spent);
  EXPECT_EQ(ShareWorked(time, 0.4, 500, now, spent), 1.0);
}

TEST(PartTime, AfterAPauseAShortRequestRunsAtFullSpeed) {
  PartTime time(1.5);
  int64_t now = 0;
  double spent = 0;
  ShareWorked(time, 1, 500, now, spent);
  now += 1000 * kMs;
  EXPECT_EQ(ShareWorked(time, 1, 45, now, spent), 1.0);
  EXPECT_LT(ShareWorked(time, 1, 45, now, spent), 0.8);
}

}  // namespace
}  // namespace hearth
