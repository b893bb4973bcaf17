// SPDX-License-Identifier: Apache-2.0
#include "talk/transcript.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "platform/file.h"

namespace hearth {
namespace {

constexpr size_t kMaxTranscriptBytes = size_t{64} << 20;

const char* NameOf(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kDeveloper:
      return "developer";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      break;
  }
  return "tool";
}

Json MessageAsJson(const Message& message) {
  JsonObject out{{"role", NameOf(message.role)}, {"content", message.content}};
  if (!message.reasoning.empty()) out.push_back({"reasoning_content", message.reasoning});
  if (!message.tool_call_id.empty()) out.push_back({"tool_call_id", message.tool_call_id});
  if (!message.name.empty()) out.push_back({"name", message.name});
  JsonArray calls;
  for (const ToolCall& call : message.tool_calls) {
    calls.push_back(
        JsonObject{{"id", call.id},
                   {"type", "function"},
                   {"function", JsonObject{{"name", call.name}, {"arguments", call.arguments}}}});
  }
  if (!calls.empty()) out.push_back({"tool_calls", std::move(calls)});
  return out;
}

size_t LongestTicks(std::string_view text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

Json MessagesAsJson(const std::vector<Message>& messages) {
  JsonArray out;
  for (const Message& message : messages) out.push_back(MessageAsJson(message));
  return out;
}

Status SaveConversation(const std::string& path, const Conversation& conversation,
                        bool may_replace) {
  if (path.empty()) return Error(Code::kInvalid, "expected the name of a file");
  if (!may_replace && FileExists(path)) {
    return Error(Code::kInvalid, "%s exists; `/save -f %s` replaces it", path.c_str(),
                 path.c_str());
  }
  const std::string text =
      WriteJson(JsonObject{{"messages", MessagesAsJson(conversation.messages)}}, 2) + "\n";
  return WriteFileAtomically(path, std::as_bytes(std::span(text)), FileReaders::kOwner);
}

Result<Conversation> LoadConversation(const std::string& path) {
  HEARTH_ASSIGN(const std::string text, ReadTextFile(path, kMaxTranscriptBytes));
  HEARTH_ASSIGN(const Json json, ParseJson(text, {.max_bytes = kMaxTranscriptBytes}).Within(path));
  return ParseConversation(json).Within(path);
}

Status CheckText(const std::string& what, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = DecodeUtf8(text.data() + at, text.data() + text.size());
    if (c.num_bytes == 0 || c.code_point == 0) {
      return Error(Code::kInvalid, "%s is not UTF-8 text: found byte 0x%02x at offset %zu",
                   what.c_str(), static_cast<unsigned char>(text[at]), at);
    }
    at += static_cast<size_t>(c.num_bytes);
  }
  return Status();
}

Result<std::string> ReadAttachment(const std::string& path) {
  if (path.empty()) return Error(Code::kInvalid, "expected the path of a file");
  HEARTH_ASSIGN(std::string text, ReadTextFile(path, kMaxAttachedBytes));
  HEARTH_TRY(CheckText(path, text));
  if (text.empty()) return Error(Code::kInvalid, "%s is empty", path.c_str());
  return text;
}

std::string WithFile(const std::string& message, const std::string& name, const std::string& text) {
  const std::string fence(std::max<size_t>(3, LongestTicks(text) + 1), '`');
  const char* end = text.ends_with('\n') ? "" : "\n";
  return message + "\n\n" + name + ":\n" + fence + "\n" + text + end + fence;
}

std::string WithInput(const std::string& message, std::string input) {
  input.resize(input.find_last_not_of("\r\n") + 1);
  if (message.empty() || input.empty()) return message + input;
  return message + "\n\n" + input;
}

}  // namespace hearth
