// SPDX-License-Identifier: Apache-2.0
// What a request changes in single logits before they become probabilities: bans, biases,
// penalties. Touches only the tokens concerned, never the whole row.
#pragma once
#include <span>
#include <vector>

#include "sampling/logit_row.h"
#include "sampling/sampler_state.h"
#include "sampling/sampling_params.h"
namespace hearth {

// Keeps its memory between rows. Thread: one at a time.
class LogitEdits {
 public:
  // In this order: bans (bad words, min_tokens), logit_bias, repetition penalty, frequency and
  // presence penalties, DRY. A banned token stays banned, whatever is added to it.
  void Apply(const SamplingParams& params, const SamplerState& state, LogitRow& row);

 private:
  void Dry(const SamplingParams& params, std::span<const Token> tokens, LogitRow& row);

  std::vector<int> match_;         // DRY: Z function of the window, read backwards
  std::vector<int> longest_;       // DRY: longest repeat a token would prolong; by token, else 0
  std::vector<Token> prolonging_;  // DRY: tokens with an entry in longest_
};

// How many tokens before position i - 1 repeat the end of `tokens`, for every i but the first;
// out[0] is 0. No repeat is longer than `limit`. Linear in the number of tokens.
void RepeatsOfTheEnd(std::span<const Token> tokens, int limit, std::vector<int>& out);

}  // namespace hearth
