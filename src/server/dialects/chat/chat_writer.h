// SPDX-License-Identifier: Apache-2.0
// What goes back on the wire for a chat completion: the whole object, or chunks of it.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "server/turns/dialect.h"
namespace hearth {

Json UsageAsJson(const TurnUsage& usage);

class ChatWriter : public ReplyWriter {
 public:
  ChatWriter(const TurnRequest& request, ReplyFacts facts);
  std::string Begin() override;
  std::string AddPrompt(int choice, const std::vector<AnswerLogprob>& prompt) override;
  std::string Add(int choice, const Delta& delta) override;
  std::string EndChoice(int choice, const ChoiceEnd& end) override;
  std::string End(const TurnUsage& usage) override;
  std::string Fail(const ApiError& error) override;
  std::string Progress(const PromptProgress& progress) const override;
  std::string Whole(const TurnUsage& usage) override;

 private:
  struct Call {
    std::string name, arguments;
  };
  struct Choice {
    std::string content, reasoning, finish_reason;
    bool has_content = false;
    std::vector<Call> calls;
    JsonArray logprobs;
  };
  std::string Chunk(int choice, JsonObject delta, Json finish_reason, Json logprobs) const;
  Json Envelope(const char* object, JsonArray choices) const;
  std::string CallId(int choice, int call) const;
  Json WholeChoice(int index);  // once

  const ReplyFacts facts_;
  const bool streams_, wants_usage_, wants_logprobs_;
  const int num_prompt_logprobs_;  // -1: none
  Json prompt_logprobs_;
  std::vector<Choice> choices_;
};

}  // namespace hearth
