// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler_state.h"

#include <limits>

namespace hearth {
namespace {

bool HasPenalty(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 ||
         params.presence_penalty != 0;
}

}  // namespace

SamplerState::SamplerState(const SamplingParams& params, std::span<const Token> prompt,
                           uint32_t choice)
    : choice_(choice),
      counts_(HasPenalty(params)),
      keeps_tokens_(counts_ || params.dry_multiplier > 0 || !params.bad_words.empty()),
      window_(params.penalty_window > 0 ? static_cast<size_t>(params.penalty_window)
                                        : std::numeric_limits<size_t>::max()),
      prompt_size_(prompt.size()) {
  if (keeps_tokens_) tokens_.assign(prompt.begin(), prompt.end());
  if (!counts_) return;
  const std::span<const Token> visible =
      prompt.size() > window_ ? prompt.subspan(prompt.size() - window_) : prompt;
  for (const Token token : visible) Add(token, 1, 1);
}

SamplerState SamplerState::WithoutPast(uint64_t num_generated, uint32_t choice) {
  SamplerState state({}, {}, choice);
  state.num_generated_ = num_generated;
  return state;
}

void SamplerState::Append(Token token) {
  ++num_generated_;
  if (!keeps_tokens_) return;
  tokens_.push_back(token);
  if (!counts_) return;
  Add(token, 1, 0);
  if (tokens_.size() <= window_) return;
  const size_t leaving = tokens_.size() - window_ - 1;
  Add(tokens_[leaving], -1, leaving < prompt_size_ ? -1 : 0);
}

void SamplerState::Add(Token token, int count, int from_prompt) {
  const auto [it, is_new] = place_in_seen_.try_emplace(token, seen_.size());
  if (is_new) seen_.push_back({token, 0, 0});
  Seen& seen = seen_[it->second];
  seen.in_window += count;
  seen.from_prompt += from_prompt;
}

}  // namespace hearth
