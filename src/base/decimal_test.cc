// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hearth {
namespace {

TEST(Decimal, IsTheNumberThatWasWritten) {
  EXPECT_EQ(MeantBy(0.6f), 0.6);
  EXPECT_EQ(MeantBy(1e-5f), 1e-5);
  EXPECT_EQ(MeantBy(-1.05f), -1.05);
  EXPECT_EQ(MeantBy(0.0f), 0.0);
  EXPECT_EQ(MeantBy(std::numeric_limits<float>::max()), 3.4028235e38);
}

TEST(Decimal, LeavesWhatIsNoNumber) {
  EXPECT_TRUE(std::isnan(MeantBy(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(MeantBy(std::numeric_limits<float>::infinity()),
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace hearth
