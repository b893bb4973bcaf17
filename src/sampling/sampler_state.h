// SPDX-License-Identifier: Apache-2.0
// What choosing a sequence's next token needs to know of its past. It follows from the tokens
// alone: a sequence that was preempted builds it again and goes on as if nothing had happened.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "sampling/sampling_params.h"
namespace hearth {

// One per sequence, made with the params the sequence is sampled with. Keeps only what these ask
// for: nothing but a count when there are no penalties. Thread: one at a time.
class SamplerState {
 public:
  // `choice` says which of the request's n replies this is: each has draws of its own.
  SamplerState(const SamplingParams& params, std::span<const Token> prompt, uint32_t choice = 0);
  // For a sequence whose params look at no past: only the number of its generated tokens matters.
  static SamplerState WithoutPast(uint64_t num_generated, uint32_t choice = 0);
  void Append(Token token);

  uint64_t num_generated() const { return num_generated_; }
  uint32_t choice() const { return choice_; }
  // Another reply to the same prompt: a copy of the state after the prompt, with its own draws.
  void set_choice(uint32_t choice) { choice_ = choice; }

  struct Seen {
    Token token;
    int in_window;    // occurrences among the last penalty_window tokens
    int from_prompt;  // so many of them in the prompt
  };
  // Every token that ever was in the window, in no order that matters.
  std::span<const Seen> seen() const { return seen_; }
  // Prompt and output; empty if no setting looks at them.
  std::span<const Token> tokens() const { return tokens_; }

 private:
  void Add(Token token, int count, int from_prompt);

  uint32_t choice_;
  bool counts_, keeps_tokens_;
  size_t window_;
  size_t prompt_size_;
  uint64_t num_generated_ = 0;
  std::vector<Token> tokens_;
  std::vector<Seen> seen_;
  std::unordered_map<Token, size_t> place_in_seen_;
};

}  // namespace hearth
