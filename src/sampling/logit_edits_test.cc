// SPDX-License-Identifier: Apache-2.0
#include "sampling/logit_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hearth {
namespace {

using ::testing::ElementsAre;

std::vector<float> Edited(const std::vector<float>& logits, const SamplingParams& params,
                          const std::vector<Token>& prompt, const std::vector<Token>& output) {
  SamplerState past(params, prompt);
  for (const Token token : output) past.Append(token);
  LogitRow row;
  row.Load(logits, {});
  LogitEdits().Apply(params, past, row);
  std::vector<float> out;
  for (int i = 0; i < row.num_tokens(); ++i) out.push_back(*row.Find(i));
  return out;
}

TEST(LogitEdits, RepetitionDividesPositiveAndMultipliesNegative) {
  EXPECT_THAT(Edited({4, -4, 4, 0}, {.repetition_penalty = 2}, {0}, {1, 1, 3}),
              ElementsAre(2, -8, 4, 0));
}

TEST(LogitEdits, FrequencyAndPresenceSeeTheOutputAndThePromptWhenAsked) {
  SamplingParams params = {.frequency_penalty = 0.5f, .presence_penalty = 0.25f};
  EXPECT_THAT(Edited({0, 0, 0}, params, {2, 2}, {1, 1}), ElementsAre(0, -1.25f, 0));
  params.prompt_counts = true;
  EXPECT_THAT(Edited({0, 0, 0}, params, {2, 2, 1}, {1, 1}), ElementsAre(0, -1.75f, -1.25f));
}

TEST(LogitEdits, TheWindowForgets) {
  SamplingParams params = {.frequency_penalty = 1, .penalty_window = 2, .prompt_counts = true};
  EXPECT_THAT(Edited({0, 0, 0}, params, {0, 0, 1}, {}), ElementsAre(-1, -1, 0));
  EXPECT_THAT(Edited({0, 0, 0}, params, {0, 0, 1}, {2}), ElementsAre(0, -1, -1));
  EXPECT_THAT(Edited({0, 0, 0}, params, {0, 0, 1}, {2, 2, 2}), ElementsAre(0, 0, -2));
}

TEST(LogitEdits, RepeatsOfTheEndAreFound) {
  std::vector<int> repeats;
  // At 5 the text would go on with "c" as it did at 2, after "ab".
  RepeatsOfTheEnd(std::vector<Token>{'a', 'b', 'c', 'a', 'b'}, 99, repeats);
  EXPECT_THAT(repeats, ElementsAre(0, 0, 2, 0, 0));
  RepeatsOfTheEnd(std::vector<Token>{1, 1, 1, 1}, 99, repeats);
  EXPECT_THAT(repeats, ElementsAre(0, 1, 2, 3));
  RepeatsOfTheEnd(std::vector<Token>{1, 1, 1, 1}, 2, repeats);
  EXPECT_THAT(repeats, ElementsAre(0, 1, 2, 2));
  RepeatsOfTheEnd({}, 99, repeats);
  EXPECT_TRUE(repeats.empty());
}

TEST(LogitEdits, DryGrowsWithTheRepeat) {
  SamplingParams params = {.dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 2};
  const std::vector<float> zeros(6, 0.0f);
  EXPECT_THAT(Edited(zeros, params, {0, 1, 2, 3}, {0}), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Edited(zeros, params, {0, 1, 2, 3}, {0, 1}), ElementsAre(0, 0, -1, 0, 0, 0));
  EXPECT_THAT(Edited(zeros, params, {0, 1, 2, 3}, {0, 1, 2}), ElementsAre(0, 0, 0, -2, 0, 0));
  params.dry_breakers = {1};
  EXPECT_THAT(Edited(zeros, params, {0, 1, 2, 3}, {0, 1, 2}), ElementsAre(0, 0, 0, 0, 0, 0));
  params.dry_breakers = {3};  // what breaks a repeat is not held back itself
  EXPECT_THAT(Edited(zeros, params, {0, 1, 2, 3}, {0, 1, 2}), ElementsAre(0, 0, 0, 0, 0, 0));
  params.dry_breakers = {};
  params.dry_window = 4;
  EXPECT_THAT(Edited(zeros, params, {0, 1, 2, 3}, {0, 1, 2}), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(LogitEdits, DryStaysFinite) {
  const std::vector<Token> same(3000, 1);
  for (const float base : {1.0f, 1.5f, 10.0f}) {
    const SamplingParams params = {.dry_multiplier = 100, .dry_base = base};
    const float logit = Edited({0, 0}, params, same, {})[1];
    EXPECT_TRUE(std::isfinite(logit)) << base;
    EXPECT_LE(logit, -100) << base;
  }
}

TEST(LogitEdits, BanBeatsBiasAndPenalty) {
  SamplingParams params = {.repetition_penalty = 0.5f, .presence_penalty = -2};
  params.logit_bias = {{0, 100.0f}, {1, 1.0f}, {1, 2.0f}};
  params.bad_words = {{0}};
  const std::vector<float> edited = Edited({1, 0}, params, {0}, {0});
  EXPECT_EQ(edited[0], -INFINITY);
  EXPECT_EQ(edited[1], 3);
}

TEST(SamplerState, KeepsNothingThatIsNotAskedFor) {
  SamplerState plain({}, std::vector<Token>{1, 2, 3});
  plain.Append(4);
  EXPECT_TRUE(plain.tokens().empty());
  EXPECT_TRUE(plain.seen().empty());
  EXPECT_EQ(plain.num_generated(), 1u);
  SamplerState counting({.presence_penalty = 1}, std::vector<Token>{1, 2, 1}, 5);
  EXPECT_EQ(counting.choice(), 5u);
  ASSERT_EQ(counting.seen().size(), 2u);
  EXPECT_EQ(counting.seen()[0].in_window, 2);
  EXPECT_EQ(counting.seen()[0].from_prompt, 2);
}

}  // namespace
}  // namespace hearth
