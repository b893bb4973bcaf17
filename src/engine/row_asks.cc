// SPDX-License-Identifier: Apache-2.0
#include "engine/row_asks.h"

#include "engine/prompt_reading.h"

namespace hearth {
namespace {

// Nothing changes a logit before the choice, so that the largest stay the largest.
bool KeepsLogits(const SamplingParams& params) {
  return params.repetition_penalty == 1 && params.frequency_penalty == 0 &&
         params.presence_penalty == 0 && params.dry_multiplier <= 0 && params.logit_bias.empty() &&
         params.bad_words.empty() && params.min_tokens <= 0;
}

}  // namespace

RowAsk AskFor(const Sequence& s, const BackendCapabilities& can) {
  const SamplingParams& params = s.request.sampling;
  if (IsScoring(s) || s.request.mask != nullptr || params.num_logprobs >= 0 ||
      !KeepsLogits(params)) {
    return {};
  }
  const bool is_greedy = params.temperature < kLeastTemperature || params.top_k == 1;
  if (is_greedy && can.chooses_tokens) return {.kind = RowAsk::Kind::kToken};
  const int top = is_greedy ? 1 : params.top_k;
  if (top > 0 && top <= can.max_top) return {.kind = RowAsk::Kind::kTop, .top = top};
  return {};
}

}  // namespace hearth
