// SPDX-License-Identifier: Apache-2.0
#include "server/turns/turn_limits.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

const std::vector<std::vector<Token>> kPrompts{std::vector<Token>(40), std::vector<Token>(60)};

TEST(TurnLimits, RefusesWhatTheKeyMayNeverHave) {
  TurnRequest turn;
  turn.num_choices = 2;
  EXPECT_FALSE(HoldToLimits({}, kPrompts, turn));
  EXPECT_FALSE(HoldToLimits({.max_concurrent = 4}, kPrompts, turn));
  const auto many = HoldToLimits({.max_concurrent = 3}, kPrompts, turn);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->param, "n");
  EXPECT_EQ(many->status, 400);
  turn.max_tokens = 41;
  EXPECT_FALSE(HoldToLimits({.max_tokens_per_request = 101}, kPrompts, turn));
  const auto longer = HoldToLimits({.max_tokens_per_request = 100}, kPrompts, turn);
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->code, "context_length_exceeded");
  EXPECT_NE(longer->message.find("101 tokens (60 in the messages, 41 in the completion)"),
            std::string::npos)
      << longer->message;
}

TEST(TurnLimits, BoundsWhatHadNoBound) {
  TurnRequest turn;
  EXPECT_FALSE(HoldToLimits({.max_tokens_per_request = 100}, kPrompts, turn));
  EXPECT_EQ(turn.max_tokens, 40);
  turn.max_tokens = 0;
  EXPECT_TRUE(HoldToLimits({.max_tokens_per_request = 60}, kPrompts, turn)) << "no room to reply";
  turn.max_tokens = 0;
  turn.prompt_only = true;
  EXPECT_FALSE(HoldToLimits({.max_tokens_per_request = 60}, kPrompts, turn)) << "none is needed";
}

TEST(TurnLimits, LowersTheClassToTheKeys) {
  TurnRequest turn;
  turn.priority = Priority::kUrgent;
  EXPECT_FALSE(HoldToLimits({}, kPrompts, turn));
  EXPECT_EQ(turn.priority, Priority::kNormal);
  EXPECT_FALSE(HoldToLimits({.max_priority = Priority::kIdle}, kPrompts, turn));
  EXPECT_EQ(turn.priority, Priority::kIdle);
  turn.priority = Priority::kLow;
  EXPECT_FALSE(HoldToLimits({.max_priority = Priority::kUrgent}, kPrompts, turn));
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
  EXPECT_EQ(error.message, "This key may have 1000 tokens per minute. Please try again in 13s.");
}

}  // namespace
}  // namespace hearth
