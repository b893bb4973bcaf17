// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hearth {
namespace {

RopeSpec GptOss() {
  RopeSpec rope;
  rope.scaling = RopeScaling::kYarn;
  rope.n_dims = 64;
  rope.theta = 150000;
  rope.factor = 32;
  rope.original_context = 4096;
  rope.yarn_truncate = false;
  return rope;
}

// Computed independently from the published formula, nine digits.
constexpr double kGptOssFrequencies[] = {1,
                                         .689044306,
                                         .474782055,
                                         .327145872,
                                         .225418,
                                         .155322989,
                                         .107024421,
                                         .0737445682,
                                         .0508132748,
                                         .0317056962,
                                         .0193350011,
                                         .0115920493,
                                         .00679495949,
                                         .00386035932,
                                         .00209379238,
                                         .0010526021,
                                         4.56483919e-4,
                                         1.29318701e-4,
                                         3.83088124e-5,
                                         2.6396469e-5,
                                         1.81883367e-5,
                                         1.25325698e-5,
                                         8.63549588e-6,
                                         5.95023926e-6,
                                         4.09997848e-6,
                                         2.82506683e-6,
                                         1.94659621e-6,
                                         1.34129104e-6,
                                         9.2420895e-7,
                                         6.36820915e-7,
                                         4.38797825e-7,
                                         3.02351143e-7};

TEST(Rope, GptOssFrequencies) {
  const std::vector<double> frequencies = RopeFrequencies(GptOss());
  ASSERT_EQ(frequencies.size(), std::size(kGptOssFrequencies));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    EXPECT_NEAR(frequencies[i] / kGptOssFrequencies[i], 1, 5e-9) << i;
  }
}

TEST(Rope, RoundedBoundsTurnPair17TooMuch) {
  RopeSpec rounded = GptOss();
  rounded.yarn_truncate = true;
  const double ratio = RopeFrequencies(rounded)[17] / RopeFrequencies(GptOss())[17];
  EXPECT_NEAR(ratio, 1.76, 0.01);
}

TEST(Rope, ConcentrationOfGptOss) {
  EXPECT_DOUBLE_EQ(YarnConcentration(32), 1.3465735902799727);
  EXPECT_EQ(YarnConcentration(1), 1);
}

TEST(Rope, LinearDividesEveryFrequency) {
  RopeSpec rope;
  rope.n_dims = 8;
  const std::vector<double> plain = RopeFrequencies(rope);
  rope.scaling = RopeScaling::kLinear;
  rope.factor = 4;
  const std::vector<double> scaled = RopeFrequencies(rope);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i] * 4, plain[i]);
}

// The converter writes llama3's scaling as divisors; both ways must turn alike.
TEST(Rope, Llama3EqualsItsDivisors) {
  RopeSpec rope;
  rope.n_dims = 64;
  rope.theta = 500000;
  rope.scaling = RopeScaling::kLlama3;
  rope.factor = 32;
  rope.original_context = 8192;
  const std::vector<double> scaled = RopeFrequencies(rope);
  RopeSpec divided = rope;
  divided.scaling = RopeScaling::kNone;
  const std::vector<double> plain = RopeFrequencies(divided);
  EXPECT_EQ(scaled.front(), plain.front());
  EXPECT_DOUBLE_EQ(scaled.back() * 32, plain.back());
  divided.scaling = RopeScaling::kDivisors;
  for (size_t i = 0; i < plain.size(); ++i) {
    divided.divisors.push_back(static_cast<float>(plain[i] / scaled[i]));
    EXPECT_LE(scaled[i], plain[i]);
    EXPECT_GE(scaled[i] * 32.000001, plain[i]);
  }
  const std::vector<double> again = RopeFrequencies(divided);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(again[i] / scaled[i], 1, 1e-6);
}

}  // namespace
}  // namespace hearth
