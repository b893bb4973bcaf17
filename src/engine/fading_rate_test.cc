// SPDX-License-Identifier: Apache-2.0
#include "engine/fading_rate.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(FadingRate, IsRightFromTheFirstStepOn) {
  FadingRate rate(5);
  EXPECT_EQ(rate.per_s(), 0);
  rate.Add(5, 0.05, 0);
  EXPECT_NEAR(rate.per_s(), 100, 1e-9);
}

TEST(FadingRate, AnHourWithoutWorkDoesNotSlowTheWorkAfterIt) {
  FadingRate rate(5);
  for (int i = 0; i < 100; ++i) rate.Add(1, 0.01, 0);
  EXPECT_NEAR(rate.per_s(), 100, 1e-9);
  rate.Add(5, 0.01, 3600);
  for (int i = 0; i < 10; ++i) rate.Add(5, 0.01, 0);
  EXPECT_NEAR(rate.per_s(), 500, 1e-6);
}

TEST(FadingRate, FollowsAChangeOfPace) {
  FadingRate rate(5);
  for (int i = 0; i < 1000; ++i) rate.Add(1, 0.01, 0);
  for (int i = 0; i < 200; ++i) rate.Add(1, 0.1, 0);
  EXPECT_NEAR(rate.per_s(), 10, 2);
}

}  // namespace
}  // namespace hearth
