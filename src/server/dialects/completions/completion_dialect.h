// SPDX-License-Identifier: Apache-2.0
// OpenAI's older completions: plain text goes on. Both halves of the dialect.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/dialects/prompt_scores.h"
#include "server/turns/dialect.h"
namespace hearth {

std::shared_ptr<const Dialect> MakeCompletionDialect();
std::span<const Field> CompletionFields();

struct CompletionRequest {
  TurnRequest turn;
  int num_prompt_logprobs = -1;  // vLLM's field: `echo` may want others
};
ApiResult<CompletionRequest> ReadCompletionRequest(const Json& body);

class CompletionWriter : public ReplyWriter {
 public:
  CompletionWriter(const TurnRequest& request, int num_prompt_logprobs, ReplyFacts facts);
  std::string Begin() override { return ""; }
  std::string AddPrompt(int choice, const std::vector<AnswerLogprob>& prompt) override;
  std::string Add(int choice, const Delta& delta) override;
  std::string EndChoice(int choice, const ChoiceEnd& end) override;
  std::string End(const TurnUsage& usage) override;
  std::string Fail(const ApiError& error) override;
  std::string Progress(const PromptProgress& progress) const override;
  std::string Whole(const TurnUsage& usage) override;

 private:
  struct Choice {
    std::string text, finish_reason;
    LogprobLists logprobs;
    Json prompt_logprobs;
  };
  Json Envelope(JsonArray choices) const;
  std::string Chunk(int choice, Json text, Json finish_reason, Json logprobs) const;

  const ReplyFacts facts_;
  const bool streams_, wants_usage_;
  const int num_logprobs_, num_prompt_logprobs_;  // -1: none
  const int choices_per_prompt_;
  std::vector<Choice> choices_;
};

}  // namespace hearth
