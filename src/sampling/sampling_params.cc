// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampling_params.h"

#include <algorithm>

namespace hearth {
namespace {

// Lists are walked once per step, so their lengths bound what a request can cost its neighbours.
constexpr size_t kMaxBiases = 1024, kMaxBadWords = 1024, kMaxBadWordTokens = 64;
constexpr size_t kMaxBreakers = 64, kMaxStops = 64;
constexpr int kMany = 1 << 24;
constexpr int kMaxDryWindow = 1 << 17;  // DRY reads its window each step: 0.4 to 0.7 ms

// Written so that NaN is outside every range.
template <class Number>
Status InRange(const char* field, Number number, double low, double high) {
  const auto value = static_cast<double>(number);
  if (value >= low && value <= high) return Status();
  return Error(Code::kInvalid, "%s: %.10g is not between %.10g and %.10g", field, value, low, high);
}

Status AtMost(const char* field, size_t count, size_t limit) {
  if (count <= limit) return Status();
  return Error(Code::kInvalid, "%s: %zu entries; the limit is %zu", field, count, limit);
}

Status IsToken(const char* field, Token token, int vocab_size) {
  if (token >= 0 && token < vocab_size) return Status();
  return Error(Code::kInvalid, "%s: token %d is not between 0 and %d", field, token,
               vocab_size - 1);
}

Status AreTokens(const char* field, const std::vector<Token>& tokens, size_t limit,
                 int vocab_size) {
  HEARTH_TRY(AtMost(field, tokens.size(), limit));
  for (const Token token : tokens) HEARTH_TRY(IsToken(field, token, vocab_size));
  return Status();
}

Status ValidateShape(const SamplingParams& params) {
  HEARTH_TRY(InRange("temperature", params.temperature, 0, 100));
  HEARTH_TRY(InRange("top_k", params.top_k, 0, kMany));
  HEARTH_TRY(InRange("typical_p", params.typical_p, 0, 1));
  HEARTH_TRY(InRange("top_p", params.top_p, 0, 1));
  HEARTH_TRY(InRange("min_p", params.min_p, 0, 1));
  HEARTH_TRY(InRange("xtc_probability", params.xtc_probability, 0, 1));
  return InRange("xtc_threshold", params.xtc_threshold, 0, 1);
}

Status ValidatePenalties(const SamplingParams& params, int vocab_size) {
  HEARTH_TRY(InRange("repetition_penalty", params.repetition_penalty, 0.01, 100));
  HEARTH_TRY(InRange("frequency_penalty", params.frequency_penalty, -2, 2));
  HEARTH_TRY(InRange("presence_penalty", params.presence_penalty, -2, 2));
  HEARTH_TRY(InRange("penalty_window", params.penalty_window, 0, kMany));
  HEARTH_TRY(InRange("dry_multiplier", params.dry_multiplier, 0, 100));
  HEARTH_TRY(InRange("dry_base", params.dry_base, 1, 10));
  HEARTH_TRY(InRange("dry_allowed_length", params.dry_allowed_length, 1, 1024));
  HEARTH_TRY(InRange("dry_window", params.dry_window, 1, kMaxDryWindow));
  return AreTokens("dry_breakers", params.dry_breakers, kMaxBreakers, vocab_size);
}

}  // namespace

Status Validate(const SamplingParams& params, int vocab_size) {
  HEARTH_TRY(ValidateShape(params));
  HEARTH_TRY(ValidatePenalties(params, vocab_size));
  HEARTH_TRY(AtMost("logit_bias", params.logit_bias.size(), kMaxBiases));
  for (const LogitBias& bias : params.logit_bias) {
    HEARTH_TRY(IsToken("logit_bias", bias.token, vocab_size));
    HEARTH_TRY(InRange("logit_bias", bias.bias, -100, 100));
  }
  HEARTH_TRY(AtMost("bad_words", params.bad_words.size(), kMaxBadWords));
  for (const std::vector<Token>& word : params.bad_words) {
    if (word.empty()) return Error(Code::kInvalid, "bad_words: an entry has no tokens");
    HEARTH_TRY(AreTokens("bad_words", word, kMaxBadWordTokens, vocab_size));
  }
  HEARTH_TRY(AreTokens("stop_tokens", params.stop_tokens, kMaxStops, vocab_size));
  HEARTH_TRY(AreTokens("eos_tokens", params.eos_tokens, kMaxStops, vocab_size));
  HEARTH_TRY(InRange("min_tokens", params.min_tokens, 0, kMany));
  HEARTH_TRY(InRange("logprobs", params.num_logprobs, -1, kMaxLogprobs));
  return InRange("prompt_logprobs", params.num_prompt_logprobs, -1, kMaxLogprobs);
}

bool EndsSequence(const SamplingParams& params, Token token) {
  const auto has = [token](const std::vector<Token>& tokens) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  return has(params.stop_tokens) || (!params.ignores_eos && has(params.eos_tokens));
}

}  // namespace hearth
