// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hearth {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Sample, ZeroTemperatureTakesTheFirstOfTheLargest) {
  const std::vector<float> logits = {1, 3, 3, -2};
  EXPECT_EQ(Sample(logits, {.temperature = 0}, 0), 1);
}

TEST(Sample, NanIsNeverChosen) {
  const std::vector<float> logits = {kNan, -5, kNan};
  EXPECT_EQ(Sample(logits, {.temperature = 0}, 0), 1);
  EXPECT_EQ(Sample(logits, {.temperature = 2}, 7), 1);
  const std::vector<float> all = {kNan, kNan};
  EXPECT_EQ(Sample(all, {.temperature = 1}, 0), -1);
}

TEST(Sample, InfinityIsCertainAndMinusInfinityImpossible) {
  EXPECT_EQ(Sample(std::vector<float>{0, kInf, 1}, {.temperature = 5}, 3), 1);
  for (uint64_t step = 0; step < 1000; ++step) {
    EXPECT_EQ(Sample(std::vector<float>{-kInf, 0, -kInf}, {.temperature = 5}, step), 1);
  }
}

TEST(Sample, FollowsTheDistribution) {
  const std::vector<float> logits = {0, 1, 2, -1};
  const double temperature = 0.7;
  std::vector<double> expected;
  double total = 0;
  for (const float logit : logits) {
    expected.push_back(std::exp(static_cast<double>(logit) / temperature));
    total += expected.back();
  }
  constexpr int kDraws = 200000;
  std::vector<int> counts(4);
  for (uint64_t step = 0; step < kDraws; ++step) {
    ++counts[static_cast<size_t>(Sample(logits, {.temperature = 0.7f, .seed = 9}, step))];
  }
  double chi = 0;
  for (size_t i = 0; i < 4; ++i) {
    const double want = expected[i] / total * kDraws;
    chi += (counts[i] - want) * (counts[i] - want) / want;
  }
  EXPECT_LT(chi, 16.3);  // three degrees of freedom: one in a thousand
}

TEST(Sample, NucleusDropsTheTail) {
  const std::vector<float> logits = {2, 1, 0, -3};  // shares .66 .24 .09 .004
  for (uint64_t step = 0; step < 2000; ++step) {
    EXPECT_LE(Sample(logits, {.temperature = 1, .top_p = 0.8f}, step), 1);
    EXPECT_EQ(Sample(logits, {.temperature = 1, .top_p = 0.0f}, step), 0);
  }
}

TEST(Sample, TopKAndMinPDropTheTail) {
  const std::vector<float> logits = {0, 2, 1, -3};
  bool saw_second = false;
  for (uint64_t step = 0; step < 2000; ++step) {
    EXPECT_EQ(Sample(logits, {.top_k = 1}, step), 1);
    const Token token = Sample(logits, {.top_k = 2}, step);
    EXPECT_TRUE(token == 1 || token == 2);
    saw_second = saw_second || token == 2;
    EXPECT_EQ(Sample(logits, {.min_p = 0.4f}, step), 1);  // e^-1 is less than 0.4
    EXPECT_NE(Sample(logits, {.min_p = 0.1f}, step), 3);
  }
  EXPECT_TRUE(saw_second);
}

TEST(Sample, StepAndSeedAreTheWholeState) {
  const std::vector<float> logits(1000, 0.0f);
  int same = 0;
  for (uint64_t step = 0; step < 100; ++step) {
    EXPECT_EQ(Sample(logits, {.seed = 1}, step), Sample(logits, {.seed = 1}, step));
    same += Sample(logits, {.seed = 1}, step) == Sample(logits, {.seed = 2}, step);
  }
  EXPECT_LT(same, 5);
}

}  // namespace
}  // namespace hearth
