// SPDX-License-Identifier: Apache-2.0
#include "server/turns/turn_limits.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace hearth {
namespace {

// "340ms", "12s", "6m0s".
std::string AsDuration(double seconds) {
  if (seconds < 1) return Printf("%.0fms", std::ceil(seconds * 1000));
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  const auto minutes = static_cast<long long>(whole / 60),
             rest = static_cast<long long>(whole % 60);
  return minutes == 0 ? Printf("%llds", rest) : Printf("%lldm%llds", minutes, rest);
}

void AddLevel(const char* what, const RateLimiter::Level& level, std::vector<HttpHeader>& out) {
  if (level.limit == 0) return;
  const std::string prefix = "x-ratelimit-", suffix = std::string("-") + what;
  out.push_back({prefix + "limit" + suffix, std::to_string(level.limit)});
  out.push_back({prefix + "remaining" + suffix, std::to_string(level.remaining)});
  out.push_back({prefix + "reset" + suffix, AsDuration(level.reset_s)});
}

// A prompt and its reply, with the numbers that a client needs to shorten them.
ApiStatus CheckLength(const std::string& maximum, int64_t most, size_t prompt,
                      const TurnRequest& turn) {
  const auto reply = static_cast<size_t>(turn.prompt_only ? 0 : std::max(1, turn.max_tokens));
  if (prompt + reply <= static_cast<size_t>(most)) return {};
  ApiError error;
  error.code = "context_length_exceeded";
  error.param = turn.prompt_field;
  error.message = maximum + Printf(
                                ". However, you requested %zu tokens (%zu in the %s, %zu in the "
                                "completion). Shorten the %s or ask for fewer tokens.",
                                prompt + reply, prompt, turn.prompt_field.c_str(), reply,
                                turn.prompt_field.c_str());
  return error;
}

// Whether what is asked of prompts of so many tokens in all stays below kMaxPromptScores.
ApiStatus CheckPromptScores(const TurnRequest& request, int64_t num_tokens) {
  const int num_top = request.sampling.num_prompt_logprobs;
  const int64_t scores = num_tokens * (num_top + 1) * request.num_choices;
  if (num_top < 0 || scores <= kMaxPromptScores) return {};
  return BadField(request.scores_field,
                  Printf("%lld prompt tokens with %d alternatives each, for %d choices, need %lld "
                         "log-probabilities; the limit is %lld",
                         static_cast<long long>(num_tokens), num_top, request.num_choices,
                         static_cast<long long>(scores), static_cast<long long>(kMaxPromptScores)));
}

}  // namespace

ApiStatus HoldToLimits(const TurnLimits& limits, const std::vector<std::vector<Token>>& prompts,
                       TurnRequest& turn) {
  size_t longest = 0, total = 0;
  for (const auto& prompt : prompts) {
    if (prompt.empty()) return BadField(turn.prompt_field, "must not be empty");
    HEARTH_TRY(
        CheckLength(Printf("This model's maximum context length is %d tokens", limits.max_context),
                    limits.max_context, prompt.size(), turn));
    longest = std::max(longest, prompt.size());
    total += prompt.size();
  }
  // The larger number is the less urgent class.
  const KeyLimits& key = limits.key;
  turn.priority = std::max(turn.priority, key.max_priority);
  const size_t replies = prompts.size() * static_cast<size_t>(turn.num_choices);
  if (key.max_concurrent > 0 && replies > static_cast<size_t>(key.max_concurrent)) {
    return BadField("n",
                    Printf("this key may run %lld replies at a time, but the request asks for %zu",
                           static_cast<long long>(key.max_concurrent), replies));
  }
  const int64_t most = key.max_tokens_per_request;
  if (most > 0) {
    HEARTH_TRY(CheckLength(
        Printf("This key's maximum is %lld tokens per request", static_cast<long long>(most)), most,
        longest, turn));
    if (turn.max_tokens == 0) turn.max_tokens = static_cast<int>(most) - static_cast<int>(longest);
  }
  return CheckPromptScores(turn, static_cast<int64_t>(total));
}

ApiStatus CheckTokens(const std::vector<Token>& tokens, int vocab_size, const std::string& field) {
  for (const Token token : tokens) {
    if (token >= 0 && token < vocab_size) continue;
    return BadField(field,
                    Printf("token %d is outside the vocabulary of %d tokens", token, vocab_size));
  }
  return {};
}

ApiError TooMuch(const RateLimiter::Refusal& refusal) {
  ApiError error;
  error.status = 429;
  error.type = refusal.limit == RateLimiter::Limit::kTokens ? "tokens" : "requests";
  error.code = "rate_limit_exceeded";
  error.retry_after_s = refusal.retry_after_s;
  const char* what = refusal.limit == RateLimiter::Limit::kTokens     ? "tokens per minute"
                     : refusal.limit == RateLimiter::Limit::kRequests ? "requests per minute"
                                                                      : "replies at a time";
  error.message = Printf("Rate limit reached: this key may use %lld %s. Please try again in %s.",
                         static_cast<long long>(refusal.allowed), what,
                         AsDuration(refusal.retry_after_s).c_str());
  return error;
}

std::vector<HttpHeader> RateHeaders(const RateLimiter::Standing& standing) {
  std::vector<HttpHeader> out;
  AddLevel("requests", standing.requests, out);
  AddLevel("tokens", standing.tokens, out);
  return out;
}

}  // namespace hearth
