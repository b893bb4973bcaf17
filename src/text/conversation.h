// SPDX-License-Identifier: Apache-2.0
// A conversation as clients state it, before any model's format: who said what, which tools exist.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
namespace hearth {

enum class Role : unsigned char { kSystem, kDeveloper, kUser, kAssistant, kTool };
enum class ReasoningEffort : unsigned char { kLow, kMedium, kHigh };

struct ToolCall {
  std::string id, name;
  std::string arguments;  // the JSON text as the model wrote it, not parsed
};
struct Message {
  Role role = Role::kUser;
  std::string content;
  std::string reasoning;             // assistant: what it thought before `content` or the calls
  std::vector<ToolCall> tool_calls;  // assistant
  std::string tool_call_id;          // tool: which call this answers
  std::string name;                  // tool: that tool's name; user, assistant: which of several
};
struct ToolDefinition {
  std::string name, description;
  Json parameters;  // a JSON schema, or null
};
struct Conversation {
  std::vector<Message> messages;
  std::vector<ToolDefinition> tools;
  std::optional<ReasoningEffort> reasoning_effort;
  // The last message, the assistant's, is not over: the reply goes on where it ends.
  bool continues_last = false;
  // For the model's chat template, beside what it gets anyway: strings, numbers and booleans.
  JsonObject template_variables = {};
};

// Reads `{messages, tools, reasoning_effort}` as OpenAI-style clients write it; other members are
// for others to read. Content may be a string or an array of text parts, which are joined;
// reasoning may be called `reasoning` or `reasoning_content`. A tool message gets the name of the
// call it answers. A mistake is refused by its path: "messages[2].content: ...".
Result<Conversation> ParseConversation(const Json& request);

}  // namespace hearth
