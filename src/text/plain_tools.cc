// SPDX-License-Identifier: Apache-2.0
#include "text/plain_tools.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace hearth {
namespace {

constexpr std::string_view kOpening =
    "# Tools\n\nYou can call tools. Each line below describes one, with the JSON schema of its "
    "arguments:\n";
constexpr std::string_view kClosing =
    "\nTo call a tool, reply with JSON of this form and nothing else, one line for each call:\n"
    "{\"name\": \"tool_name\", \"arguments\": {\"argument\": \"value\"}}\n"
    "You will be sent the result. If no tool is needed, answer in plain text.";
// Of a call that a result repeats, so that results of one tool can be told apart.
constexpr size_t kMaxRepeatedBytes = 200;

// By id; of several with one id the first. A table: results may be as many as calls.
using Calls = std::unordered_map<std::string_view, const ToolCall*>;

Calls CallsOf(const Conversation& conversation) {
  Calls calls;
  for (const Message& message : conversation.messages) {
    for (const ToolCall& call : message.tool_calls) {
      if (!call.id.empty()) calls.emplace(call.id, &call);
    }
  }
  return calls;
}

std::string ResultText(const Calls& calls, const Message& message) {
  std::string text = "Result of " + message.name;
  const auto found = calls.find(message.tool_call_id);
  const ToolCall* call = found == calls.end() ? nullptr : found->second;
  if (call != nullptr && call->arguments.size() <= kMaxRepeatedBytes) {
    auto parsed = ParseJson(call->arguments);  // on one line
    text += " " + (parsed.ok() ? WriteJson(*parsed) : call->arguments);
  }
  return text + ":\n" + message.content;
}

Message AsWords(Message message) {
  for (const ToolCall& call : message.tool_calls) {
    if (!message.content.empty()) message.content += "\n";
    message.content += PlainCall(call);
  }
  message.tool_calls.clear();
  return message;
}

void PutFirst(const std::string& text, bool has_system, std::vector<Message>& messages) {
  const Role role = has_system ? Role::kSystem : Role::kUser;
  const bool is_there = !messages.empty() && (messages[0].role == role ||
                                              (has_system && messages[0].role == Role::kDeveloper));
  if (!is_there) {
    messages.emplace(messages.begin())->role = role;
    messages[0].content = text;
  } else if (has_system) {
    messages[0].content += (messages[0].content.empty() ? "" : "\n\n") + text;
  } else {
    messages[0].content = text + "\n\n" + messages[0].content;
  }
}

}  // namespace

std::string PlainToolsText(const std::vector<ToolDefinition>& tools) {
  std::string text(kOpening);
  for (const ToolDefinition& tool : tools) {
    JsonObject line{{"name", tool.name}};
    if (!tool.description.empty()) line.push_back({"description", tool.description});
    line.push_back(
        {"parameters", tool.parameters.is_null() ? Json(JsonObject{}) : tool.parameters});
    text += WriteJson(line) + "\n";
  }
  return text.append(kClosing);
}

std::string PlainCall(const ToolCall& call) {
  const auto parsed = ParseJson(call.arguments, {.max_depth = 256, .is_passed_on = true});
  const std::string arguments = call.arguments.empty() ? "{}"
                                : parsed.ok()          ? call.arguments
                                                       : WriteJson(Json(call.arguments));
  return "{\"name\": " + WriteJson(Json(call.name)) + ", \"arguments\": " + arguments + "}";
}

bool MentionsTools(const Conversation& conversation) {
  const auto mentions = [](const Message& message) {
    return message.role == Role::kTool || !message.tool_calls.empty();
  };
  return !conversation.tools.empty() ||
         std::any_of(conversation.messages.begin(), conversation.messages.end(), mentions);
}

Conversation WithPlainTools(const Conversation& conversation, bool has_system) {
  Conversation out = conversation;
  out.tools.clear();
  out.messages.clear();
  bool was_result = false;
  const Calls calls = CallsOf(conversation);
  for (const Message& message : conversation.messages) {
    const bool is_result = message.role == Role::kTool;
    if (!is_result) {
      out.messages.push_back(AsWords(message));
    } else if (was_result) {
      out.messages.back().content += "\n\n" + ResultText(calls, message);
    } else {
      out.messages.emplace_back().content = ResultText(calls, message);
    }
    was_result = is_result;
  }
  if (!conversation.tools.empty()) {
    PutFirst(PlainToolsText(conversation.tools), has_system, out.messages);
  }
  return out;
}

}  // namespace hearth
