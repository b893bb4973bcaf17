// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "sampling/random_draw.h"

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The tokens that may follow `prompt`.
std::vector<Token> Kept(const std::vector<float>& logits, const SamplingParams& params,
                        const std::vector<Token>& prompt = {}, AllowedTokens allowed = {}) {
  std::vector<Token> tokens;
  for (const Sampler::Chance& chance :
       Sampler().Chances(logits, params, SamplerState(params, prompt), allowed)) {
    tokens.push_back(chance.token);
  }
  return tokens;
}

TEST(Sample, ZeroTemperatureTakesTheFirstOfTheLargest) {
  const std::vector<float> logits = {1, 3, 3, -2};
  EXPECT_EQ(Sample(logits, {.temperature = 0}, 0), 1);
  EXPECT_EQ(Sample(logits, {.temperature = 1e-30f}, 0), 1);
}

TEST(Sample, NanIsNeverChosen) {
  const std::vector<float> logits = {kNan, -5, kNan};
  EXPECT_EQ(Sample(logits, {.temperature = 0}, 0), 1);
  EXPECT_EQ(Sample(logits, {.temperature = 2}, 7), 1);
  const std::vector<float> all(100, kNan);
  for (const float temperature : {0.0f, 1.0f}) {
    EXPECT_EQ(Sample(all, {.temperature = temperature}, 0), -1);
    EXPECT_EQ(Sample({}, {.temperature = temperature}, 0), -1);
    EXPECT_EQ(Sample(std::vector<float>{-kInf}, {.temperature = temperature}, 0), -1);
  }
}

TEST(Sample, InfinityIsCertainAndMinusInfinityImpossible) {
  EXPECT_EQ(Sample(std::vector<float>{0, kInf, 1, kInf}, {.temperature = 5}, 3), 1);
  for (uint64_t step = 0; step < 1000; ++step) {
    EXPECT_EQ(Sample(std::vector<float>{-kInf, 0, -kInf}, {.temperature = 5}, step), 1);
  }
}

TEST(Sample, EdgesOfEveryShare) {
  const std::vector<float> logits = {2, 1, 0, -3};  // shares .66 .24 .09 .004
  EXPECT_THAT(Kept(logits, {.top_p = 0.8f}), ElementsAre(0, 1));
  EXPECT_THAT(Kept(logits, {.top_p = 0.0f}), ElementsAre(0));
  EXPECT_THAT(Kept(logits, {.top_p = 1.0f}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.top_p = 0.9999f}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.top_k = 1}), ElementsAre(0));
  EXPECT_THAT(Kept(logits, {.top_k = 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Kept(logits, {.top_k = 4}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.top_k = 1 << 24}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.min_p = 0.3f}), ElementsAre(0, 1));
  EXPECT_THAT(Kept(logits, {.min_p = 1.0f}), ElementsAre(0));
  EXPECT_THAT(Kept({1, 1, 0}, {.min_p = 1.0f}), ElementsAre(0, 1));
  EXPECT_THAT(Kept(logits, {.typical_p = 1.0f}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.typical_p = 0.0f}), ElementsAre(0));
  // Expected surprise .87: the second token's is 1.4, the first one's .41.
  EXPECT_THAT(Kept(logits, {.typical_p = 0.67f}), ElementsAre(0, 1));
  EXPECT_THAT(Kept(logits, {.temperature = 100}), ElementsAre(0, 1, 2, 3));
}

TEST(Sample, TiesGoToTheLowerTokens) {
  const std::vector<float> flat(1000, 0.5f);
  EXPECT_THAT(Kept(flat, {.top_k = 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Kept(flat, {.top_p = 0.0019f}), ElementsAre(0, 1));
  EXPECT_THAT(Kept(flat, {.typical_p = 0.0019f}), ElementsAre(0, 1));
  EXPECT_THAT(Kept({-0.0f, 0.0f, 0.0f}, {.top_k = 2}), ElementsAre(0, 1)) << "zeros are equal";
}

TEST(Sample, XtcSparesTheLeastLikelyTopChoice) {
  const std::vector<float> logits = {0, 2, 1, -3};
  const SamplingParams always = {.xtc_probability = 1, .xtc_threshold = 0.2f};
  EXPECT_THAT(Kept(logits, always), ElementsAre(0, 2, 3)) << "1 and 2 are top choices";
  EXPECT_THAT(Kept(logits, {.xtc_probability = 0, .xtc_threshold = 0.2f}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.xtc_probability = 1, .xtc_threshold = 0.51f}), ElementsAre(0, 1, 2, 3))
      << "a single top choice stays";
  EXPECT_THAT(Kept(logits, {.xtc_probability = 1, .xtc_threshold = 0}), ElementsAre(3));
  EXPECT_THAT(Kept({1, 1, 1, 0}, {.xtc_probability = 1, .xtc_threshold = 0.1f, .seed = 4}),
              ElementsAre(3));
}

TEST(Sample, TheMaskComesFirst) {
  std::vector<float> logits(70, 0.0f);
  logits[69] = 9;
  const std::vector<uint32_t> allowed = {0x00000005u, 0, 0xffffffffu << 1};
  EXPECT_THAT(Kept(logits, {}, {}, allowed), ElementsAre(0, 2, 65, 66, 67, 68, 69));
  EXPECT_THAT(Kept(logits, {.top_k = 3}, {}, allowed), ElementsAre(0, 2, 69));
  EXPECT_THAT(Kept(logits, {}, {}, std::vector<uint32_t>(3)), IsEmpty());
  EXPECT_EQ(Sampler().Choose(logits, {}, SamplerState::WithoutPast(0), std::vector<uint32_t>(3)),
            -1);
  SamplingParams biased;
  biased.logit_bias = {{1, 100.0f}};
  EXPECT_THAT(Kept(logits, biased, {}, allowed), ElementsAre(0, 2, 65, 66, 67, 68, 69))
      << "a bias does not allow what the mask forbids";
}

TEST(Sample, BansHoldUntilTheirTimeIsUp) {
  const std::vector<float> logits = {0, 1, 2, 3};
  SamplingParams params;
  params.stop_tokens = {3};
  params.eos_tokens = {2};
  params.min_tokens = 2;
  SamplerState past(params, {});
  EXPECT_THAT(Kept(logits, params), ElementsAre(0, 1));
  past.Append(0);
  past.Append(0);
  EXPECT_EQ(Sampler().Chances(logits, params, past).size(), 4u);
  params.ignores_eos = true;
  EXPECT_THAT(Kept(logits, params), ElementsAre(0, 1, 2));
  EXPECT_TRUE(EndsSequence(params, 3));
  EXPECT_FALSE(EndsSequence(params, 2));
  params.ignores_eos = false;
  EXPECT_TRUE(EndsSequence(params, 2));
  EXPECT_FALSE(EndsSequence(params, 1));
}

TEST(Sample, BadWordsAreNeverCompleted) {
  const std::vector<float> logits = {0, 0, 0, 0};
  SamplingParams params;
  params.bad_words = {{3}, {0, 1, 2}};
  EXPECT_THAT(Kept(logits, params), ElementsAre(0, 1, 2));
  EXPECT_THAT(Kept(logits, params, {1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Kept(logits, params, {0, 1}), ElementsAre(0, 1)) << "across the prompt's end";
  EXPECT_THAT(Kept(logits, params, {2, 0, 1}), ElementsAre(0, 1));
  params.bad_words = {{0}, {1}, {2}, {3}};
  EXPECT_THAT(Kept(logits, params), IsEmpty());
}

TEST(Sample, TokensBeyondTheRowAreIgnored) {
  SamplingParams params = {.repetition_penalty = 1.2f, .dry_multiplier = 1};
  params.logit_bias = {{9, 1.0f}, {-1, 1.0f}};
  params.bad_words = {{9}, {}};
  params.dry_allowed_length = 1;
  EXPECT_THAT(Kept({0, 0}, params, {9, 9, 9, -4, 9}), ElementsAre(0, 1));
}

TEST(Sample, SeedChoiceAndStepAreTheWholeState) {
  const std::vector<float> logits(1000, 0.0f);
  const auto token = [&](uint64_t seed, uint32_t choice, uint64_t step) {
    return Sampler().Choose(logits, {.seed = seed}, SamplerState::WithoutPast(step, choice));
  };
  int same = 0;
  for (uint64_t step = 0; step < 100; ++step) {
    EXPECT_EQ(token(1, 0, step), Sample(logits, {.seed = 1}, step));
    EXPECT_EQ(token(1, 7, step), token(1, 7, step));
    same += token(1, 0, step) == token(2, 0, step);
    same += token(1, 0, step) == token(1, 1, step);
    same += token(1, 0, step) == token(1, 0, step + 1);
  }
  EXPECT_LT(same, 10);
}

TEST(UniformDraw, StreamsDiffer) {
  const DrawPlace token = {.seed = 3, .choice = 1, .step = 2};
  const DrawPlace xtc = {.seed = 3, .choice = 1, .step = 2, .stream = DrawStream::kXtc};
  EXPECT_EQ(UniformDraw(token), UniformDraw(token));
  EXPECT_NE(UniformDraw(token), UniformDraw(xtc));
  double least = 1, most = 0;
  for (uint64_t step = 0; step < 10000; ++step) {
    const double u = UniformDraw({.step = step});
    least = std::min(least, u);
    most = std::max(most, u);
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
  EXPECT_LT(least, 0.001);
  EXPECT_GT(most, 0.999);
}

}  // namespace
}  // namespace hearth
