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

// What a turn is held to.
struct TurnLimits {
  int max_context = 0;  // the model's
  KeyLimits key;
};
// Holds the turn to what the model can take and its key may ever ask for: a longer request, more
// replies at a time than can be, or more log-probabilities of prompts than one reply may hold, is a
// mistake (`context_length_exceeded` is the code by which agents know that they must shorten the
// conversation, with exact numbers); a better class than the key's is lowered to it, and a reply
// without a bound gets what the key has left. Nothing after this checks a length again.
ApiStatus HoldToLimits(const TurnLimits& limits, const std::vector<std::vector<Token>>& prompts,
                       TurnRequest& turn);

// Ids that a client gave, blamed on `field`. Those of a tokenizer need no look.
ApiStatus CheckTokens(const std::vector<Token>& tokens, int vocab_size, const std::string& field);

// One reply must not fill the memory: a name, a number and a text for each of these.
inline constexpr int64_t kMaxPromptScores = 300'000;

// 429 with the time to wait.
ApiError TooMuch(const RateLimiter::Refusal& refusal);

// x-ratelimit-*, as OpenAI names them; nothing for what has no limit.
std::vector<HttpHeader> RateHeaders(const RateLimiter::Standing& standing);

}  // namespace hearth
