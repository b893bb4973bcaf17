// SPDX-License-Identifier: Apache-2.0
// The measure of quality must see what it is there to see.
#include "app/divergence.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hearth {
namespace {

TEST(Divergence, IsNothingBetweenEquals) {
  Divergence divergence;
  divergence.Add(std::vector<double>{1, 2, -3}, std::vector<float>{1, 2, -3});
  EXPECT_EQ(divergence.rows(), 1);
  EXPECT_EQ(divergence.top1(), 1);
  EXPECT_EQ(divergence.mean_kl(), 0);
  EXPECT_EQ(divergence.nmse(), 0);
}

TEST(Divergence, KnowsATextbookCase) {
  // Probabilities 1/2, 1/2 against 1/4, 3/4: ln 2 - ln(3) / 2.
  Divergence divergence;
  divergence.Add(std::vector<double>{0, 0}, std::vector<float>{0, std::log(3.0f)});
  EXPECT_NEAR(divergence.mean_kl(), std::log(2) - std::log(3) / 2, 1e-7);
  EXPECT_EQ(divergence.top1(), 0);
}

TEST(Divergence, IgnoresAShiftInProbabilitiesButNotInLogits) {
  Divergence divergence;
  divergence.Add(std::vector<double>{1, 2, 3}, std::vector<float>{2, 3, 4});
  EXPECT_NEAR(divergence.mean_kl(), 0, 1e-12);
  EXPECT_NEAR(divergence.nmse(), 3.0 / 14, 1e-12);
}

TEST(Divergence, AveragesAndJoins) {
  Divergence one, two;
  one.Add(std::vector<double>{0, 0}, std::vector<float>{0, std::log(3.0f)});
  two.Add(std::vector<double>{5, 0}, std::vector<float>{5, 0});
  two.Add(one);
  EXPECT_EQ(two.rows(), 2);
  EXPECT_EQ(two.top1(), 0.5);
  EXPECT_NEAR(two.mean_kl(), one.mean_kl() / 2, 1e-12);
  EXPECT_EQ(two.max_kl(), one.max_kl());
}

TEST(Divergence, IsNoNumberWhenALogitIsNone) {
  const std::vector<float> got = {0, std::numeric_limits<float>::quiet_NaN()};
  Divergence divergence;
  divergence.Add(std::vector<double>{0, 0}, got);
  divergence.Add(std::vector<double>{0, 1}, std::vector<float>{0, 1});
  EXPECT_TRUE(std::isnan(divergence.mean_kl()));
  EXPECT_TRUE(std::isnan(divergence.max_kl()));
  EXPECT_TRUE(std::isnan(divergence.nmse()));
}

}  // namespace
}  // namespace hearth
