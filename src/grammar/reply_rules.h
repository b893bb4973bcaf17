// SPDX-License-Identifier: Apache-2.0
// What a request asks of the shape of a reply, in every conversation format.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/compiler.h"
#include "text/conversation.h"
namespace hearth {

enum class ToolChoice : unsigned char {
  kAuto,      // an answer or calls, as the model likes
  kNone,      // an answer
  kRequired,  // at least one call, of any tool
  kNamed      // calls of one tool, at least one
};

struct ReplyRules {
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string named_tool{};    // kNamed
  bool parallel_calls = true;  // more than one call in a reply
  // The answer is JSON of this schema. Null: any text.
  const Json* answer_schema = nullptr;
  // The answer is a text of this grammar instead.
  std::shared_ptr<const Grammar> answer_grammar{};
  // Tokens of reasoning, after which the answer must begin. 0: no reasoning; none: no bound.
  std::optional<int> reasoning_tokens{};
  std::string owner{};  // whose compiled grammars may be used
};

// Tools that a reply may call under `rules`. kInvalid: a named tool that is not there, or a call
// required where there is no tool.
Result<std::vector<const ToolDefinition*>> CallableTools(const std::vector<ToolDefinition>& tools,
                                                         const ReplyRules& rules);

// What the arguments of a call must be: the tool's parameters, which describe an object.
Json ArgumentsSchema(const ToolDefinition& tool);

}  // namespace hearth
