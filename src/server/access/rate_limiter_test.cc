// SPDX-License-Identifier: Apache-2.0
#include "server/access/rate_limiter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>

namespace hearth {
namespace {

using Limit = RateLimiter::Limit;
constexpr int64_t kSecond = 1'000'000;

int64_t After(int64_t now_us, double seconds) {
  return now_us + static_cast<int64_t>(std::ceil(seconds * 1e6));
}

TEST(RateLimiter, LetsAMinutesWorthInAtOnceAndThenEvenly) {
  RateLimiter limiter;
  const KeyLimits limits{.requests_per_minute = 3};
  int64_t now = 5 * kSecond;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(limiter.Arrive("ada", limits, now));
  const auto refusal = limiter.Arrive("ada", limits, now);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->limit, Limit::kRequests);
  EXPECT_NEAR(refusal->retry_after_s, 20, 1e-3);
  EXPECT_TRUE(limiter.Arrive("ada", limits, now + 19 * kSecond)) << "asking costs nothing";
  EXPECT_FALSE(limiter.Arrive("ada", limits, now + 20 * kSecond));
  EXPECT_TRUE(limiter.Arrive("ada", limits, now + 21 * kSecond));
  EXPECT_FALSE(limiter.Arrive("bob", {}, now)) << "another key has no limit";
}

TEST(RateLimiter, ChargesWhatWasUsedAndWaitsForDebts) {
  RateLimiter limiter;
  const KeyLimits limits{.tokens_per_minute = 600};
  ASSERT_FALSE(limiter.Arrive("ada", limits, 0));
  ASSERT_FALSE(limiter.Start("ada", {1, 100, 0}));
  EXPECT_EQ(limiter.StandingOf("ada", 0).tokens.remaining, 500);
  limiter.End("ada", {1, 100, 0}, 800, 0);  // a long reply: 300 more than there were
  EXPECT_EQ(limiter.StandingOf("ada", 0).tokens.remaining, 0);
  EXPECT_NEAR(limiter.StandingOf("ada", 0).tokens.reset_s, 90, 1e-6);
  const auto early = limiter.Arrive("ada", limits, 0);
  ASSERT_TRUE(early) << "nobody need read a request of a key in debt";
  EXPECT_EQ(early->limit, Limit::kTokens);
  EXPECT_NEAR(early->retry_after_s, 30.1, 1e-3);
  ASSERT_FALSE(limiter.Arrive("ada", limits, 31 * kSecond));
  const auto refusal = limiter.Start("ada", {1, 50, 31 * kSecond});
  ASSERT_TRUE(refusal);
  EXPECT_NEAR(refusal->retry_after_s, 4, 1e-3);
  EXPECT_FALSE(limiter.Start("ada", {1, 50, 35 * kSecond}));
}

TEST(RateLimiter, TakesAPromptLargerThanAMinuteOnlyWhenAllIsThere) {
  RateLimiter limiter;
  const KeyLimits limits{.tokens_per_minute = 60};
  ASSERT_FALSE(limiter.Arrive("ada", limits, 0));
  EXPECT_FALSE(limiter.Start("ada", {1, 600, 0}));
  const auto refusal = limiter.Start("ada", {1, 1, 0});
  ASSERT_TRUE(refusal);
  EXPECT_NEAR(refusal->retry_after_s, 541, 1e-3) << "ten minutes' worth was used at once";
}

TEST(RateLimiter, CountsRepliesNotRequests) {
  RateLimiter limiter;
  const KeyLimits limits{.max_concurrent = 4};
  ASSERT_FALSE(limiter.Arrive("ada", limits, 0));
  ASSERT_FALSE(limiter.Start("ada", {3, 1, 0}));
  ASSERT_FALSE(limiter.Arrive("ada", limits, 0));
  EXPECT_TRUE(limiter.Start("ada", {2, 1, 0}));
  ASSERT_FALSE(limiter.Start("ada", {1, 1, 0}));
  EXPECT_TRUE(limiter.Arrive("ada", limits, 0));
  limiter.End("ada", {3, 1, 0}, 9, 40 * kSecond);
  ASSERT_FALSE(limiter.Start("ada", {3, 1, 40 * kSecond}));
  const auto refusal = limiter.Arrive("ada", limits, 40 * kSecond);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->limit, Limit::kConcurrent);
  EXPECT_NEAR(refusal->retry_after_s, 10, 1e-6) << "one of four that take 40 s each";
}

TEST(RateLimiter, HoldsGiveBackWhatCameToNothing) {
  RateLimiter limiter;
  const KeyLimits limits{.max_concurrent = 1, .tokens_per_minute = 100};
  ASSERT_FALSE(limiter.Arrive("ada", limits, 0));
  ASSERT_FALSE(limiter.Start("ada", {1, 80, 0}));
  {
    const RateHold hold(limiter, "ada", {1, 80, 0});
    EXPECT_EQ(limiter.counts()[0].num_running, 1);
  }
  EXPECT_EQ(limiter.counts()[0].num_running, 0);
  EXPECT_EQ(limiter.StandingOf("ada", 0).tokens.remaining, 100);
  ASSERT_FALSE(limiter.Start("ada", {1, 80, 0}));
  RateHold hold(limiter, "ada", {1, 80, 0});
  hold.End(15, 0);
  hold.End(15, 0);
  EXPECT_EQ(limiter.StandingOf("ada", 0).tokens.remaining, 5) << "charged once";
  EXPECT_EQ(limiter.counts()[0].generated_tokens, 15);
}

TEST(RateLimiter, NewLimitsCountFromTheNextRequest) {
  RateLimiter limiter;
  ASSERT_FALSE(limiter.Arrive("ada", {.requests_per_minute = 1}, 0));
  EXPECT_TRUE(limiter.Arrive("ada", {.requests_per_minute = 1}, 0));
  EXPECT_FALSE(limiter.Arrive("ada", {.requests_per_minute = 2}, 0));
  EXPECT_TRUE(limiter.Arrive("ada", {.requests_per_minute = 2}, 0));
  EXPECT_FALSE(limiter.Arrive("ada", {}, 0));
}

// What the limiter promises, on random traffic of several keys: no window sees more than a minute's
// worth and what came back in it; waiting as long as told is enough; and a key's answers are those
// it would get with nobody else there.
class RandomTraffic {
 public:
  explicit RandomTraffic(uint32_t seed) : random_(seed) {
    limits_.requests_per_minute = 1 + Below(40);
    limits_.tokens_per_minute = 50 + Below(5000);
    limits_.max_concurrent = 1 + Below(6);
  }
  void Run() {
    for (int i = 0; i < 400; ++i) {
      now_ += Below(3 * kSecond);
      if (Below(3) == 0) (void)shared_.Arrive("flooder", limits_, now_);
      if (!running_.empty() && Below(2) == 0) EndOne();
      if (Below(3) != 0) AskOnce();
    }
    CheckWindows(arrivals_, static_cast<double>(limits_.requests_per_minute), 0);
    // Replies that ran when the bucket was empty, and the prompts beyond it, are the overshoot.
    CheckWindows(tokens_, static_cast<double>(limits_.tokens_per_minute), kMaxCost);
  }

 private:
  static constexpr double kMaxCost = 6 * 300 + 200;  // replies at a time, and a prompt
  int Below(int64_t n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  void AskOnce() {
    const auto refusal = shared_.Arrive("ada", limits_, now_);
    const auto lone = alone_.Arrive("ada", limits_, now_);
    ASSERT_EQ(refusal.has_value(), lone.has_value());
    if (refusal) return CheckWait(*refusal);
    arrivals_.push_back({now_, 1});
    const RateLimiter::Asked asked{1 + Below(2), 1 + Below(200), now_};
    const auto held = shared_.Start("ada", asked);
    ASSERT_EQ(held.has_value(), alone_.Start("ada", asked).has_value());
    if (held) return;
    tokens_.push_back({now_, static_cast<double>(asked.prompt_tokens)});
    running_.push_back(asked);
  }
  void EndOne() {
    const RateLimiter::Asked one = running_.front();
    running_.pop_front();
    const int generated = Below(300) * one.num_replies;
    shared_.End("ada", one, generated, now_);
    alone_.End("ada", one, generated, now_);
    tokens_.push_back({now_, static_cast<double>(generated)});
  }
  // A twin that waits as told is let in, and one that comes sooner is not.
  void CheckWait(const RateLimiter::Refusal& refusal) {
    if (refusal.limit == Limit::kConcurrent) return;
    ASSERT_GT(refusal.retry_after_s, 0);
    const int64_t soon = now_ + static_cast<int64_t>(refusal.retry_after_s * 0.9e6);
    ASSERT_TRUE(shared_.Arrive("ada", limits_, soon).has_value());
    ASSERT_TRUE(alone_.Arrive("ada", limits_, soon).has_value());
    now_ = After(now_, refusal.retry_after_s);
    const auto again = shared_.Arrive("ada", limits_, now_);
    const auto lone = alone_.Arrive("ada", limits_, now_);
    ASSERT_EQ(again.has_value(), lone.has_value());
    if (!again) return arrivals_.push_back({now_, 1});
    ASSERT_NE(static_cast<int>(again->limit), static_cast<int>(refusal.limit));
  }
  static void CheckWindows(const std::vector<std::pair<int64_t, double>>& events, double limit,
                           double overshoot) {
    for (size_t from = 0; from < events.size(); ++from) {
      double sum = 0;
      for (size_t to = from; to < events.size(); ++to) {
        sum += events[to].second;
        const double minutes = static_cast<double>(events[to].first - events[from].first) / 60e6;
        ASSERT_LE(sum, limit * (1 + minutes) + overshoot + 1e-3);
      }
    }
  }

  std::mt19937_64 random_;
  KeyLimits limits_;
  RateLimiter shared_, alone_;
  int64_t now_ = 0;
  std::deque<RateLimiter::Asked> running_;
  std::vector<std::pair<int64_t, double>> arrivals_, tokens_;
};

TEST(RateLimiter, KeepsItsPromisesOnRandomTraffic) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RandomTraffic(seed).Run();
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace hearth
