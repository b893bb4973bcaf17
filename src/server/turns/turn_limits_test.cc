// SPDX-License-Identifier: Apache-2.0
#include "server/turns/turn_limits.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

const std::vector<std::vector<Token>> kPrompts{std::vector<Token>(40), std::vector<Token>(60)};

// For a model that takes `max_context` tokens.
ApiStatus Hold(const KeyLimits& key, TurnRequest& turn, int max_context = 1000) {
  return HoldToLimits({max_context, key}, kPrompts, turn);
}

TEST(TurnLimits, RefusesWhatTheKeyMayNeverHave) {
  TurnRequest turn;
  turn.num_choices = 2;
  EXPECT_TRUE(Hold({}, turn).ok());
  EXPECT_TRUE(Hold({.max_concurrent = 4}, turn).ok());
  const auto many = Hold({.max_concurrent = 3}, turn);
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().param, "n");
  EXPECT_EQ(many.error().status, 400);
  turn.max_tokens = 41;
  EXPECT_TRUE(Hold({.max_tokens_per_request = 101}, turn).ok());
  const auto longer = Hold({.max_tokens_per_request = 100}, turn);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().code, "context_length_exceeded");
  EXPECT_EQ(
      longer.error().message,
      "This key's maximum is 100 tokens per request. However, you requested 101 tokens (60 "
      "in the messages, 41 in the completion). Shorten the messages or ask for fewer tokens.");
}

TEST(TurnLimits, RefusesWhatTheModelCannotTake) {
  TurnRequest turn;
  turn.max_tokens = 41;
  EXPECT_TRUE(Hold({}, turn, 101).ok());
  const auto longer = Hold({}, turn, 100);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().code, "context_length_exceeded");
  EXPECT_EQ(longer.error().message,
            "This model's maximum context length is 100 tokens. However, you requested 101 tokens "
            "(60 in the messages, 41 in the completion). Shorten the messages or ask for fewer "
            "tokens.");
  turn.max_tokens = 0;
  EXPECT_FALSE(Hold({}, turn, 60).ok()) << "no room to reply";
  turn.prompt_only = true;
  EXPECT_TRUE(Hold({}, turn, 60).ok()) << "none is needed";
  EXPECT_FALSE(HoldToLimits({100, {}}, {{}}, turn).ok()) << "an empty prompt";
}

TEST(TurnLimits, TokensAreOfTheVocabulary) {
  EXPECT_TRUE(CheckTokens({0, 7}, 8, "input").ok());
  for (const Token bad : {8, -1}) {
    const auto refused = CheckTokens({0, bad}, 8, "input");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().param, "input");
  }
}

TEST(TurnLimits, BoundsWhatHadNoBound) {
  TurnRequest turn;
  EXPECT_TRUE(Hold({.max_tokens_per_request = 100}, turn).ok());
  EXPECT_EQ(turn.max_tokens, 40);
  turn.max_tokens = 0;
  EXPECT_FALSE(Hold({.max_tokens_per_request = 60}, turn).ok()) << "no room to reply";
  turn.max_tokens = 0;
  turn.prompt_only = true;
  EXPECT_TRUE(Hold({.max_tokens_per_request = 60}, turn).ok()) << "none is needed";
}

TEST(TurnLimits, LowersTheClassToTheKeys) {
  TurnRequest turn;
  turn.priority = Priority::kUrgent;
  EXPECT_TRUE(Hold({}, turn).ok());
  EXPECT_EQ(turn.priority, Priority::kNormal);
  EXPECT_TRUE(Hold({.max_priority = Priority::kIdle}, turn).ok());
  EXPECT_EQ(turn.priority, Priority::kIdle);
  turn.priority = Priority::kLow;
  EXPECT_TRUE(Hold({.max_priority = Priority::kUrgent}, turn).ok());
  EXPECT_EQ(turn.priority, Priority::kLow) << "nobody is made more urgent than asked for";
}

TEST(TurnLimits, SaysTheStandingAsOpenAiDoes) {
  RateLimiter::Standing standing;
  EXPECT_TRUE(RateHeaders(standing).empty());
  standing.requests = {60, 59, 0.9991};
  standing.tokens = {1000, 0, 360};
  const auto headers = RateHeaders(standing);
  std::string all;
  for (const HttpHeader& header : headers) all += header.name + "=" + header.value + " ";
  EXPECT_EQ(all,
            "x-ratelimit-limit-requests=60 x-ratelimit-remaining-requests=59 "
            "x-ratelimit-reset-requests=1000ms x-ratelimit-limit-tokens=1000 "
            "x-ratelimit-remaining-tokens=0 x-ratelimit-reset-tokens=6m0s ");
  const ApiError error = TooMuch({RateLimiter::Limit::kTokens, 1000, 12.1});
  EXPECT_EQ(error.status, 429);
  EXPECT_EQ(error.code, "rate_limit_exceeded");
  EXPECT_EQ(
      error.message,
      "Rate limit reached: this key may use 1000 tokens per minute. Please try again in 13s.");
}

}  // namespace
}  // namespace hearth
