// SPDX-License-Identifier: Apache-2.0
#include "server/access/rate_limiter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hearth {
namespace {

constexpr double kMinuteUs = 60e6;
// A key's mean over its replies: about the last ten.
constexpr double kMeanShare = 0.1;

}  // namespace

double RateLimiter::Bucket::UsedAt(int64_t limit, int64_t now_us) const {
  const auto passed = static_cast<double>(std::max<int64_t>(0, now_us - at_us));
  return std::max(0.0, used - passed * static_cast<double>(limit) / kMinuteUs);
}

double RateLimiter::Bucket::WaitFor(int64_t limit, double cost, int64_t now_us) const {
  const double over = UsedAt(limit, now_us) + cost - static_cast<double>(limit);
  // Less than a millionth of a token is rounding, not usage.
  return over <= 1e-6 ? 0 : over * kMinuteUs * 1e-6 / static_cast<double>(limit);
}

void RateLimiter::Bucket::Add(int64_t limit, double cost, int64_t now_us) {
  used = std::max(0.0, UsedAt(limit, now_us) + cost);
  at_us = std::max(at_us, now_us);
}

std::optional<RateLimiter::Refusal> RateLimiter::CheckReplies(Account& account, int num_replies) {
  const int64_t limit = account.limits.max_concurrent;
  const int64_t running = account.counts.num_running;
  if (limit == 0 || running + num_replies <= limit) return std::nullopt;
  ++account.counts.refused_concurrent;
  const double next = account.mean_reply_s / static_cast<double>(std::max<int64_t>(1, running));
  return Refusal{Limit::kConcurrent, limit, std::clamp(next, 1.0, 60.0)};
}

std::optional<RateLimiter::Refusal> RateLimiter::CheckTokens(Account& account, int64_t tokens,
                                                             int64_t now_us) {
  const int64_t limit = account.limits.tokens_per_minute;
  if (limit == 0) return std::nullopt;
  const auto cost = static_cast<double>(std::min(tokens, limit));
  const double wait = account.tokens.WaitFor(limit, cost, now_us);
  if (wait == 0) return std::nullopt;
  ++account.counts.refused_tokens;
  return Refusal{Limit::kTokens, limit, wait};
}

std::optional<RateLimiter::Refusal> RateLimiter::Arrive(const std::string& key,
                                                        const KeyLimits& limits, int64_t now_us) {
  const MutexLock lock(mu_);
  Account& account = accounts_[key];
  // What was used so far was used under the old limits.
  account.requests.Add(account.limits.requests_per_minute, 0, now_us);
  account.tokens.Add(account.limits.tokens_per_minute, 0, now_us);
  account.limits = limits;
  if (auto refusal = CheckReplies(account, 1)) return refusal;
  if (auto refusal = CheckTokens(account, 1, now_us)) return refusal;
  const int64_t limit = limits.requests_per_minute;
  if (limit > 0) {
    const double wait = account.requests.WaitFor(limit, 1, now_us);
    if (wait > 0) {
      ++account.counts.refused_requests;
      return Refusal{Limit::kRequests, limit, wait};
    }
    account.requests.Add(limit, 1, now_us);
  }
  ++account.counts.num_requests;
  return std::nullopt;
}

std::optional<RateLimiter::Refusal> RateLimiter::Start(const std::string& key, const Asked& asked) {
  const MutexLock lock(mu_);
  Account& account = accounts_[key];
  if (auto refusal = CheckReplies(account, asked.num_replies)) return refusal;
  if (auto refusal = CheckTokens(account, asked.prompt_tokens, asked.at_us)) return refusal;
  account.counts.num_running += asked.num_replies;
  const int64_t limit = account.limits.tokens_per_minute;
  if (limit > 0) account.tokens.Add(limit, static_cast<double>(asked.prompt_tokens), asked.at_us);
  return std::nullopt;
}

void RateLimiter::End(const std::string& key, const Asked& asked, int64_t generated_tokens,
                      int64_t now_us) {
  const MutexLock lock(mu_);
  Account& account = accounts_[key];
  account.counts.num_running -= asked.num_replies;
  account.counts.prompt_tokens += asked.prompt_tokens;
  account.counts.generated_tokens += generated_tokens;
  const int64_t limit = account.limits.tokens_per_minute;
  if (limit > 0) account.tokens.Add(limit, static_cast<double>(generated_tokens), now_us);
  const double took = static_cast<double>(std::max<int64_t>(0, now_us - asked.at_us)) * 1e-6;
  account.mean_reply_s = account.mean_reply_s == 0
                             ? took
                             : (1 - kMeanShare) * account.mean_reply_s + kMeanShare * took;
}

void RateLimiter::Undo(const std::string& key, const Asked& asked) {
  const MutexLock lock(mu_);
  Account& account = accounts_[key];
  account.counts.num_running -= asked.num_replies;
  Bucket& bucket = account.tokens;
  bucket.used = std::max(0.0, bucket.used - static_cast<double>(asked.prompt_tokens));
}

RateLimiter::Level RateLimiter::LevelOf(const Bucket& bucket, int64_t limit, int64_t now_us) {
  if (limit == 0) return {};
  const double used = bucket.UsedAt(limit, now_us);
  const double left = std::floor(static_cast<double>(limit) - used + 1e-6);
  return {limit, std::max<int64_t>(0, static_cast<int64_t>(left)),
          used * kMinuteUs * 1e-6 / static_cast<double>(limit)};
}

RateLimiter::Standing RateLimiter::StandingOf(const std::string& key, int64_t now_us) const {
  const MutexLock lock(mu_);
  const auto found = accounts_.find(key);
  if (found == accounts_.end()) return {};
  const Account& account = found->second;
  return {LevelOf(account.requests, account.limits.requests_per_minute, now_us),
          LevelOf(account.tokens, account.limits.tokens_per_minute, now_us)};
}

std::vector<RateLimiter::Counts> RateLimiter::counts() const {
  const MutexLock lock(mu_);
  std::vector<Counts> out;
  for (const auto& [key, account] : accounts_) {
    out.push_back(account.counts);
    out.back().key = key;
  }
  return out;
}

void RateHold::End(int64_t generated_tokens, int64_t now_us) {
  if (!std::exchange(is_open_, false)) return;
  limiter_.End(key_, asked_, generated_tokens, now_us);
}

}  // namespace hearth
