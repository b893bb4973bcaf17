// SPDX-License-Identifier: Apache-2.0
// Logits -> log-probabilities to report: those of the model itself, before masks, penalties and
// temperature, so that they mean the same whatever a request sets.
#pragma once
#include <span>
#include <vector>

#include "base/ids.h"
#include "sampling/candidates.h"
#include "sampling/logit_row.h"
namespace hearth {

struct TokenLogprob {
  Token token;
  float logprob;  // natural logarithm, at most 0
};

// Reported for what the model rules out: JSON has no infinity.
inline constexpr float kLowestLogprob = -9999.0f;

struct Logprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // the likeliest, likeliest first; ties by token
  int rank = 0;                   // of a prompt's token: 1 is the likeliest; 0: was not counted
};

// Keeps its memory between rows; a row's answer depends on that row alone. Thread: one at a time.
class LogprobReader {
 public:
  // `chosen` need not be among the `num_top` likeliest.
  Logprobs Read(std::span<const float> logits, Token chosen, int num_top);
  // Row i of `rows`, [next.size(), vocab], is what the model said before next[i]. For a prompt,
  // `next` is the prompt without its first token, of which nothing was predicted.
  std::vector<Logprobs> ReadRows(std::span<const float> rows, std::span<const Token> next,
                                 int num_top);

 private:
  LogitRow row_;
  Candidates candidates_;
};

}  // namespace hearth
