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
  std::string tool_call_id, name;    // tool: which call this answers, and that tool's name
};
struct ToolDefinition {
  std::string name, description;
  Json parameters;  // a JSON schema, or null
};
struct Conversation {
  std::vector<Message> messages;
  std::vector<ToolDefinition> tools;
  std::optional<ReasoningEffort> reasoning_effort;
};

}  // namespace hearth
