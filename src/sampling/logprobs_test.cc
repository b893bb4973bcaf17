// SPDX-License-Identifier: Apache-2.0
#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "sampling/exact_math.h"

namespace hearth {
namespace {

TEST(ExactMath, ExpIsNearlyThatOfTheCLibrary) {
  for (int i = 0; i <= 400000; ++i) {
    const float x = -87.0f * static_cast<float>(i) / 400000;
    const double want = std::exp(static_cast<double>(x));
    const double got = static_cast<double>(ExpOfNonPositive(x));
    ASSERT_LE(std::abs(got - want), 3e-7 * want) << x;
  }
  EXPECT_EQ(ExpOfNonPositive(0.0f), 1.0f);
  EXPECT_EQ(ExpOfNonPositive(-87.5f), 0.0f);
  EXPECT_EQ(ExpOfNonPositive(-1e30f), 0.0f);
  EXPECT_EQ(ExpOfNonPositive(-INFINITY), 0.0f);
}

TEST(ExactMath, LanesDoNotMix) {
  const Float4 four = ExpOfNonPositive(Float4{-1, -INFINITY, 0, -20});
  EXPECT_EQ(four[0], ExpOfNonPositive(-1.0f));
  EXPECT_EQ(four[1], 0.0f);
  EXPECT_EQ(four[2], 1.0f);
  EXPECT_EQ(four[3], ExpOfNonPositive(-20.0f));
}

TEST(ExactMath, LogIsThatOfTheCLibrary) {
  for (double x = 1e-30; x < 1e30; x *= 1.001) {
    ASSERT_NEAR(NaturalLog(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
  EXPECT_EQ(NaturalLog(1.0), 0.0);
}

TEST(Logprobs, AreTheModelsOwn) {
  std::mt19937_64 random(3);
  LogprobReader reader;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(static_cast<size_t>(1 + round * 17));
    for (float& logit : logits) {
      logit = std::round(std::normal_distribution<float>(0, 4)(random) * 4) / 4;
    }
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    const auto want = [&](Token token) {
      return static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(total);
    };
    std::vector<Token> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    const int num_top = round % 21;
    const auto chosen = static_cast<Token>(random() % logits.size());
    const Logprobs got = reader.Read(logits, chosen, num_top);
    ASSERT_EQ(got.chosen.token, chosen);
    ASSERT_NEAR(static_cast<double>(got.chosen.logprob), want(chosen), 3e-6);
    ASSERT_EQ(got.top.size(), std::min(logits.size(), static_cast<size_t>(num_top)));
    for (size_t i = 0; i < got.top.size(); ++i) {
      ASSERT_EQ(got.top[i].token, order[i]) << "round " << round;
      ASSERT_NEAR(static_cast<double>(got.top[i].logprob), want(order[i]), 3e-6);
      ASSERT_LE(got.top[i].logprob, 0);
    }
  }
}

TEST(Logprobs, ImpossibleTokensHaveTheLowest) {
  LogprobReader reader;
  const Logprobs got = reader.Read(std::vector<float>{0, -INFINITY, NAN, 0}, 1, 20);
  EXPECT_EQ(got.chosen.logprob, kLowestLogprob);
  ASSERT_EQ(got.top.size(), 2u);
  EXPECT_FLOAT_EQ(got.top[1].logprob, -0.6931472f);
  EXPECT_EQ(reader.Read(std::vector<float>{0, -1e30f}, 1, 0).chosen.logprob, kLowestLogprob);
  EXPECT_EQ(reader.Read(std::vector<float>{0, INFINITY}, 1, 0).chosen.logprob, 0);
  EXPECT_EQ(reader.Read(std::vector<float>{0, INFINITY}, 0, 0).chosen.logprob, kLowestLogprob);
  EXPECT_EQ(reader.Read(std::vector<float>{NAN}, 0, 3).chosen.logprob, kLowestLogprob);
  EXPECT_TRUE(reader.Read(std::vector<float>{NAN}, 0, 3).top.empty());
}

TEST(Logprobs, RowsAreReadOneByOne) {
  const std::vector<float> rows = {0, 1, 2, 3, 0, 0};
  const std::vector<Token> next = {2, 0};
  LogprobReader reader;
  const std::vector<Logprobs> got = reader.ReadRows(rows, next, 1);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].top[0].token, 2);
  EXPECT_EQ(got[1].chosen.logprob, reader.Read(std::span(rows).subspan(3), 0, 0).chosen.logprob);
  EXPECT_TRUE(reader.ReadRows({}, {}, 1).empty());
}

}  // namespace
}  // namespace hearth
