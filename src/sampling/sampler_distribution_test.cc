// SPDX-License-Identifier: Apache-2.0
// A million draws for every setting, against the distribution a sorted double-precision oracle
// computes. Seeds are fixed, so these tests pass or fail for good.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sampling/sampler.h"
#include "testing/sampling_oracle.h"

namespace hearth {
namespace {

// Sanitizers make a draw ten times as slow; what they look for shows in the first few.
#ifdef HEARTH_DCHECKS
constexpr uint64_t kDraws = 50'000;
#else
constexpr uint64_t kDraws = 1'000'000;
#endif

struct Case {
  std::string name;
  SamplingParams params;
};

// Twelve tokens with a tie, one impossible and one NaN.
const std::vector<float> kLogits = {1.5f, -0.5f, 2.25f, 0.75f, -INFINITY, 0.0f,
                                    2.0f, 2.0f,  NAN,   -2.0f, 1.0f,      -1.25f};
const std::vector<Token> kPrompt = {2, 6, 3, 2, 6}, kOutput = {0, 2, 6};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"plain", {.seed = 1}},
      {"temperature", {.temperature = 0.6f, .seed = 2}},
      {"hot", {.temperature = 3.0f, .seed = 3}},
      {"top_k", {.top_k = 4, .seed = 4}},
      {"typical_p", {.typical_p = 0.7f, .seed = 5}},
      {"top_p", {.top_p = 0.85f, .seed = 6}},
      {"min_p", {.min_p = 0.2f, .seed = 7}},
      {"xtc", {.xtc_probability = 0.4f, .xtc_threshold = 0.1f, .seed = 8}},
      {"repetition", {.seed = 9, .repetition_penalty = 1.3f}},
      {"frequency", {.seed = 10, .frequency_penalty = 0.5f, .prompt_counts = true}},
      {"presence", {.seed = 11, .presence_penalty = 0.8f}},
      {"dry", {.seed = 12, .dry_multiplier = 0.4f, .dry_allowed_length = 1}},
      {"usual", {.temperature = 0.8f, .top_k = 8, .top_p = 0.95f, .min_p = 0.05f, .seed = 13}},
  };
  Case bias = {"logit_bias", {.seed = 14}};
  bias.params.logit_bias = {{9, 3.5f}, {2, -1.0f}};
  cases.push_back(bias);
  Case words = {"bad_words", {.seed = 15}};
  words.params.bad_words = {{10}, {2, 6, 7}, {6, 6, 0}};
  cases.push_back(words);
  Case everything = {"everything",
                     {.temperature = 1.2f,
                      .top_k = 9,
                      .typical_p = 0.95f,
                      .top_p = 0.97f,
                      .min_p = 0.02f,
                      .xtc_probability = 0.5f,
                      .xtc_threshold = 0.15f,
                      .seed = 16,
                      .repetition_penalty = 1.1f,
                      .frequency_penalty = 0.1f,
                      .presence_penalty = 0.2f,
                      .penalty_window = 6,
                      .dry_multiplier = 0.3f,
                      .dry_allowed_length = 1}};
  everything.params.logit_bias = {{9, 2.0f}};
  everything.params.stop_tokens = {10};
  everything.params.min_tokens = 2'000'000'000;
  cases.push_back(everything);
  return cases;
}

// What XTC decides by a draw is a mixture of both outcomes.
std::vector<double> Expected(const SamplingParams& params) {
  testing::OracleInput input = {kLogits, params, kPrompt, kOutput};
  std::vector<double> expected = testing::SamplingOracle(input).probabilities();
  const auto share = static_cast<double>(params.xtc_probability);
  if (share == 0) return expected;
  input.drops_top = true;
  const std::vector<double> without_top = testing::SamplingOracle(input).probabilities();
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = (1 - share) * expected[i] + share * without_top[i];
  }
  return expected;
}

TEST(SamplerDistribution, AMillionDrawsFollowTheOracle) {
  Sampler sampler;
  for (const Case& c : Cases()) {
    SamplerState past(c.params, kPrompt);
    for (const Token token : kOutput) past.Append(token);
    std::vector<uint64_t> counts(kLogits.size());
    for (uint64_t i = 0; i < kDraws; ++i) {
      // Every draw is made after the same text, as if it were the first of another reply.
      past.set_choice(static_cast<uint32_t>(i));
      const Token token = sampler.Choose(kLogits, c.params, past);
      ASSERT_GE(token, 0) << c.name;
      ++counts[static_cast<size_t>(token)];
    }
    const std::vector<double> expected = Expected(c.params);
    double chi = 0;
    int freedom = -1;
    for (size_t i = 0; i < counts.size(); ++i) {
      const double want = expected[i] * static_cast<double>(kDraws);
      if (want == 0) {
        EXPECT_EQ(counts[i], 0u) << c.name << ": token " << i << " is ruled out";
        continue;
      }
      EXPECT_GT(want, 5) << c.name << ": too rare for this test";
      const double off = static_cast<double>(counts[i]) - want;
      chi += off * off / want;
      ++freedom;
    }
    ASSERT_GE(freedom, 1) << c.name;
    // Wilson and Hilferty: the cube root of chi-square / f is nearly normal. 3.09 sigma are one in
    // a thousand; sixteen fixed seeds should all stay within.
    const double nine = 2.0 / (9.0 * freedom);
    const double limit = freedom * std::pow(1 - nine + 3.09 * std::sqrt(nine), 3);
    EXPECT_LT(chi, limit) << c.name << ": chi-square with " << freedom << " degrees of freedom";
  }
}

// The same over consecutive steps of one sequence, which is how draws are really spent.
TEST(SamplerDistribution, StepsOfOneSequenceAreIndependent) {
  const std::vector<float> even(4, 0.0f);
  Sampler sampler;
  std::vector<uint64_t> pairs(16);
  Token before = 0;
  for (uint64_t step = 0; step < kDraws; ++step) {
    const Token token = sampler.Choose(even, {.seed = 99}, SamplerState::WithoutPast(step));
    ++pairs[static_cast<size_t>(before * 4 + token)];
    before = token;
  }
  double chi = 0;
  const double want = static_cast<double>(kDraws) / 16;
  for (const uint64_t count : pairs) {
    chi += (static_cast<double>(count) - want) * (static_cast<double>(count) - want) / want;
  }
  EXPECT_LT(chi, 37.7);  // fifteen degrees of freedom: one in a thousand
}

}  // namespace
}  // namespace hearth
