// SPDX-License-Identifier: Apache-2.0
// A key's limits (rate_limiter.h) in the words of a request: which field is beyond them, what a
// client that must wait is told; and how much one reply may hold. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/message.h"
#include "server/access/rate_limiter.h"
#include "server/turns/api_error.h"
#include "server/turns/turn_request.h"
namespace hearth {

// Holds the turn to what its key may ever ask for: a longer request, or more replies at a time than
// can be, is a mistake; a better class than the key's is lowered to it, and a reply without a bound
// gets what is left.
std::optional<ApiError> HoldToLimits(const KeyLimits& limits,
                                     const std::vector<std::vector<Token>>& prompts,
                                     TurnRequest& turn);

// The code by which agents know that they must shorten the conversation, with exact numbers.
ApiError TooLong(const std::string& maximum, size_t prompt, size_t reply, const std::string& field);

// One reply must not fill the memory: a name, a number and a text for each of these.
inline constexpr int64_t kMaxPromptScores = 300'000;
// Whether what is asked of prompts of so many tokens in all stays below that.
std::optional<ApiError> CheckPromptScores(const TurnRequest& request, int64_t num_tokens);

// 429 with the time to wait.
ApiError TooMuch(const RateLimiter::Refusal& refusal);

// x-ratelimit-*, as OpenAI names them; nothing for what has no limit.
std::vector<HttpHeader> RateHeaders(const RateLimiter::Standing& standing);

}  // namespace hearth
