// SPDX-License-Identifier: Apache-2.0
#include "base/clock_watch.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ClockWatch, BelievesAClockThatWentEvenlyForLong) {
  ClockWatch clock(3600);
  EXPECT_FALSE(clock.IsSettled(1'000'000, 5));
  EXPECT_FALSE(clock.IsSettled(1'003'599, 3604));
  EXPECT_TRUE(clock.IsSettled(1'003'600, 3605));
  EXPECT_TRUE(clock.IsSettled(1'003'800, 3605)) << "slewing is no jump";
}

TEST(ClockWatch, WaitsAgainAfterEachJump) {
  ClockWatch clock(3600);
  clock.IsSettled(1'000'000, 0);
  ASSERT_TRUE(clock.IsSettled(1'004'000, 4000));
  EXPECT_FALSE(clock.IsSettled(9'000'000, 4001)) << "forwards";
  EXPECT_FALSE(clock.IsSettled(9'003'000, 7001));
  EXPECT_FALSE(clock.IsSettled(1'007'002, 7002)) << "and back";
  EXPECT_FALSE(clock.IsSettled(1'010'000, 10'000));
  EXPECT_TRUE(clock.IsSettled(1'010'602, 10'602));
}

TEST(ClockWatch, ASlowDriftIsAJumpOnceItIsLong) {
  ClockWatch clock(100);
  clock.IsSettled(0, 0);
  ASSERT_TRUE(clock.IsSettled(300, 200));
  EXPECT_TRUE(clock.IsSettled(1'300, 1'000));
  EXPECT_FALSE(clock.IsSettled(1'401, 1'100));
}

TEST(ClockWatch, CanBeToldToBelieveAtOnce) {
  ClockWatch clock(0);
  EXPECT_TRUE(clock.IsSettled(7, 1));
  EXPECT_TRUE(clock.IsSettled(7'000'000, 2));
}

}  // namespace
}  // namespace hearth
