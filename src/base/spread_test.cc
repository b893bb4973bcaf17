// SPDX-License-Identifier: Apache-2.0
#include "base/spread.h"

#include <gtest/gtest.h>

#include <vector>
namespace hearth {
namespace {

TEST(EvenSpread, EvenAFewHaveTheMedianOfMany) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EvenSpread spread(seed, EvenSpread::kGolden);
    for (int part = 0; part < 20; ++part) {
      std::vector<int> lengths;
      double sum = 0;
      for (int i = 0; i < 12; ++i) {
        lengths.push_back(spread.Around(300));
        sum += lengths.back();
        EXPECT_GE(lengths.back(), 150);
        EXPECT_LE(lengths.back(), 450);
      }
      std::sort(lengths.begin(), lengths.end());
      EXPECT_NEAR(lengths[6], 300, 36) << seed;
      EXPECT_NEAR(sum / 12, 300, 30) << seed;
    }
  }
}

TEST(EvenSpread, ReachesBothEndsAndNeverNothing) {
  EvenSpread spread(7, EvenSpread::kRootTwo);
  int least = 100, most = 0;
  for (int i = 0; i < 1000; ++i) {
    const int value = spread.Around(4);
    least = std::min(least, value);
    most = std::max(most, value);
    EXPECT_EQ(spread.Around(1), 1);
  }
  EXPECT_EQ(least, 2);
  EXPECT_EQ(most, 6);
}

TEST(EvenSpread, TwoSideBySideDoNotGoTogether) {
  EvenSpread a(1, EvenSpread::kGolden), b(1, EvenSpread::kRootTwo);
  double together = 0;
  for (int i = 0; i < 64; ++i) together += (a.Share() - 0.5) * (b.Share() - 0.5) / 64;
  EXPECT_NEAR(together * 12, 0, 0.15) << "the correlation";
}

}  // namespace
}  // namespace hearth
