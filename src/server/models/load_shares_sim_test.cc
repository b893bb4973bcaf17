// SPDX-License-Identifier: Apache-2.0
// What one client may cost the others by having models loaded, under a virtual clock.
#include <gtest/gtest.h>

#include "testing/load_household.h"

namespace hearth {
namespace {

using testing::At;
using testing::CountAbove;
using testing::Household;
using testing::kCost;
using testing::kLoad;
using testing::kLong;
using testing::kMs;
using testing::kSecond;
using testing::kVictim;
using testing::Sum;

TEST(LoadShares, WhoSwitchesModelsCostsOthersASixteenthOfTheirTime) {
  for (uint32_t seed = 0; seed < 3; ++seed) EXPECT_EQ(testing::StormOfTwo(seed, false), "");
}

TEST(LoadShares, AlsoWhoHangsUpBeforeTheEnd) { EXPECT_EQ(testing::StormOfTwo(1, true), ""); }

TEST(LoadShares, AlsoWithManyModels) { EXPECT_EQ(testing::StormOfMany(), ""); }

TEST(LoadShares, AloneAllIsAsFastAsTheLoads) { EXPECT_EQ(testing::Alone(), ""); }

TEST(LoadShares, NobodyStarvesBecauseItsModelIsLarge) {
  EXPECT_EQ(testing::LargeBesideSmall(), "");
}

TEST(LoadShares, NobodyStarvesBesideStrangersWhoNeverOweAnything) {
  EXPECT_EQ(testing::BesideStrangers(), "");
}

// What was loaded while nobody else was there is nobody's debt.
TEST(LoadShares, NobodyPaysForATimeAlone) {
  Household house({kLoad, kLoad}, 1, 4);
  house.Add({"early", {0, 1}, 5 * kMs});
  house.RunUntil(100 * kSecond);
  house.Add({"late", {0}, 5 * kMs, 20 * kMs});
  house.RunUntil(100 * kSecond + 16 * kCost);
  EXPECT_LE(At(house.Waits("early", 90 * kSecond), 1), 17 * kCost);
}

// Two who want different models, each all the time: both get half, and little goes to loading.
TEST(LoadShares, TwoWithDifferentModelsTakeTurns) {
  for (const int64_t other : {kLoad, 4 * kLoad}) {
    Household house({kLoad, other}, 1, 5);
    const int64_t cost = kLoad + other;
    house.Add(kVictim);
    house.Add({"rival", {1}, 5 * kMs, 20 * kMs}, kSecond);
    house.RunUntil(kLong);
    for (const char* const name : {"victim", "rival"}) {
      const std::vector<int64_t> waits = house.Waits(name, kSecond);
      EXPECT_LE(At(waits, 1), 17 * cost) << name;
      EXPECT_LE(Sum(waits), kLong * 7 / 10) << name << " has its model for a fair part";
      EXPECT_EQ(At(waits, 0.99), 0) << name;
    }
    EXPECT_LE(house.num_loads(), 2 * (kLong / (8 * cost) + 2));
  }
}

// Beside people who use different models without end, a newcomer's model comes in bounded time, and
// so does everybody's for ever.
TEST(LoadShares, NobodyStarvesInACrowdOfOneModelEach) {
  Household house(std::vector<int64_t>(6, kLoad), 2, 6);
  for (int i = 0; i < 6; ++i) {
    house.Add({"client " + std::to_string(i), {i}, 5 * kMs, 20 * kMs}, i * kSecond);
  }
  house.RunUntil(kLong);
  for (int i = 0; i < 6; ++i) {
    const std::vector<int64_t> waits = house.Waits("client " + std::to_string(i));
    EXPECT_LE(At(waits, 1), 33 * kCost) << i;
    EXPECT_GE(CountAbove(waits, 0), 5) << i << " had to wait at times";
  }
}

}  // namespace
}  // namespace hearth
