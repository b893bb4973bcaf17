// SPDX-License-Identifier: Apache-2.0
// How a request wants its tokens chosen. Plain data; docs/sampling.md says what each field does and
// in which order they act. The defaults change nothing: one draw from the model's distribution.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
namespace hearth {

struct LogitBias {
  Token token;
  float bias;
};

// Temperatures below this one choose the most likely token, as 0 does.
inline constexpr float kLeastTemperature = 1e-4f;
inline constexpr int kMaxLogprobs = 20;

struct SamplingParams {
  // Which tokens stay, and how they are weighed.
  float temperature = 1.0f;      // 0 = the most likely token
  int top_k = 0;                 // keep this many of the most likely tokens; 0 = all
  float typical_p = 1.0f;        // keep the most typical tokens up to this share; 1 = all
  float top_p = 1.0f;            // keep the most likely tokens up to this share; 1 = all
  float min_p = 0.0f;            // keep tokens with at least this share of the likeliest one's
  float xtc_probability = 0.0f;  // how often the top choices are excluded
  float xtc_threshold = 0.1f;    // what makes a top choice; above 0.5 there is at most one
  uint64_t seed = 0;

  // Against saying again what was said.
  float repetition_penalty = 1.0f;  // divides positive logits, multiplies negative ones
  float frequency_penalty = 0.0f;   // taken off once per occurrence
  float presence_penalty = 0.0f;    // taken off once
  int penalty_window = 0;           // how many of the last tokens these three see; 0 = all
  bool prompt_counts = false;       // frequency and presence see the prompt too; repetition always
  float dry_multiplier = 0.0f;      // 0 = no DRY
  float dry_base = 1.75f;
  int dry_allowed_length = 2;  // repeats this long cost dry_multiplier, each token more * base
  int dry_window = 4096;       // how many of the last tokens DRY looks for repeats in
  std::vector<Token> dry_breakers = {};  // no repeat is seen across these

  // Tokens by name.
  std::vector<LogitBias> logit_bias = {};
  std::vector<std::vector<Token>> bad_words = {};  // sequences that are never completed
  std::vector<Token> stop_tokens = {};             // the request's own
  std::vector<Token> eos_tokens = {};              // the model's
  int min_tokens = 0;                              // before so many no token that ends is chosen
  bool ignores_eos = false;                        // eos_tokens do not end the sequence

  // What is reported: -1 = nothing, 0 to 20 = the token's own and that many of the likeliest.
  int num_logprobs = -1;
  int num_prompt_logprobs = -1;
};

// kInvalid with the field, its value and its range if a field makes no sense. Tokens must be below
// `vocab_size`.
Status Validate(const SamplingParams& params, int vocab_size);

// Whether this token ends the sequence.
bool EndsSequence(const SamplingParams& params, Token token);

}  // namespace hearth
