// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of prompts as clients know them: vLLM's `prompt_logprobs`, and the four lists
// of OpenAI's older completions, which `echo` lets begin with the prompt.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/turns/turn.h"
namespace hearth {

// null for the first token, then per token an object of token ids. Of `top` at most `num_top`.
Json PromptLogprobsAsJson(const std::vector<AnswerLogprob>& prompt, int num_top);

// The four parallel lists of the older form.
class LogprobLists {
 public:
  // The first token of a prompt: nothing is known of it.
  void AddUnknown(const std::string& bytes, size_t length);
  // `length`: how many bytes of the text are this token's; none when it is not shown.
  void Add(const AnswerLogprob& one, int num_top, size_t length);
  void Add(const AnswerLogprob& one) { Add(one, INT32_MAX, one.chosen.bytes.size()); }
  Json AsJson() const;
  void set_offset(size_t offset) { offset_ = offset; }

 private:
  JsonArray tokens_, values_, tops_, offsets_;
  size_t offset_ = 0;
};

}  // namespace hearth
