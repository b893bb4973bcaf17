// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of an answer's tokens as OpenAI's dialects write them.
#pragma once
#include <vector>

#include "base/json.h"
#include "server/turns/turn.h"
namespace hearth {

// Each entry is written already: as trees they would take up to 75 KiB a token.
// With each token's bytes: a token may be half a character, its text says only what can be shown.
JsonArray LogprobsAsJson(const std::vector<AnswerLogprob>& logprobs);
// Without: what events of responses hold.
JsonArray BriefLogprobsAsJson(const std::vector<AnswerLogprob>& logprobs);

}  // namespace hearth
