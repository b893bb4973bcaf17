// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/message_list.h"

#include <algorithm>
#include <utility>

namespace hearth {

const std::string* StringIn(const Json& object, std::string_view name) {
  const Json* member = object.Find(name);
  return member == nullptr ? nullptr : member->string();
}

ApiResult<std::string> ReadTextParts(const Json& content, const std::string& path,
                                     const std::vector<std::string>& text_types) {
  if (content.string() != nullptr) return *content.string();
  if (content.array() == nullptr) return BadField(path, "must be a string or an array of parts");
  std::string text;
  for (size_t i = 0; i < content.array()->size(); ++i) {
    const Json& part = (*content.array())[i];
    const std::string at = path + Printf("[%zu]", i);
    const std::string* type = StringIn(part, "type");
    if (type == nullptr) return BadField(at + ".type", "must be a string");
    if (std::find(text_types.begin(), text_types.end(), *type) == text_types.end()) {
      return BadField(at + ".type", Quoted(*type) + " is not supported; only text is",
                      "unsupported_value");
    }
    const std::string* piece = StringIn(part, *type == "refusal" ? "refusal" : "text");
    if (piece == nullptr) return BadField(at + ".text", "must be a string");
    text += *piece;
  }
  return text;
}

void MessageList::AddText(const char* role, std::string text, const std::string& path) {
  EndMessage();
  messages_.push_back(JsonObject{{"role", role}, {"content", std::move(text)}});
  message_paths_.push_back(path);
}

void MessageList::AddToolResult(std::string call_id, std::string text, const std::string& path) {
  EndMessage();
  messages_.push_back(JsonObject{
      {"role", "tool"}, {"tool_call_id", std::move(call_id)}, {"content", std::move(text)}});
  message_paths_.push_back(path);
}

MessageList::Assistant& MessageList::Open(const std::string& path) {
  if (!is_open_) assistant_ = {"", "", false, {}, path};
  is_open_ = true;
  return assistant_;
}

void MessageList::AddThought(const std::string& text, const std::string& path) {
  if (is_open_ && (assistant_.has_answer || !assistant_.calls.empty())) EndMessage();
  Open(path).thought += text;
}

void MessageList::AddAnswer(const std::string& text, const std::string& path) {
  if (is_open_ && !assistant_.calls.empty()) EndMessage();
  Assistant& assistant = Open(path);
  assistant.answer += text;
  assistant.has_answer = true;
}

void MessageList::AddCall(std::string id, std::string name, std::string arguments,
                          const std::string& path) {
  Open(path).calls.push_back(JsonObject{
      {"id", std::move(id)},
      {"type", "function"},
      {"function", JsonObject{{"name", std::move(name)}, {"arguments", std::move(arguments)}}}});
}

void MessageList::EndMessage() {
  if (!is_open_) return;
  is_open_ = false;
  JsonObject message{{"role", "assistant"}};
  if (assistant_.has_answer || assistant_.calls.empty()) {
    message.push_back({"content", std::move(assistant_.answer)});
  }
  if (!assistant_.thought.empty()) message.push_back({"reasoning", std::move(assistant_.thought)});
  if (!assistant_.calls.empty()) message.push_back({"tool_calls", std::move(assistant_.calls)});
  messages_.push_back(std::move(message));
  message_paths_.push_back(assistant_.path);
}

void MessageList::AddTool(JsonObject function, const std::string& path) {
  tools_.push_back(JsonObject{{"type", "function"}, {"function", std::move(function)}});
  tool_paths_.push_back(path);
}

ApiResult<Conversation> MessageList::Parse() && {
  EndMessage();
  JsonObject body{{"messages", std::move(messages_)}};
  if (!tools_.empty()) body.push_back({"tools", std::move(tools_)});
  Result<Conversation> conversation = ParseConversation(Json(std::move(body)));
  if (conversation.ok()) return *std::move(conversation);
  ApiError error = FromStatus(conversation.status());
  // "messages[3].content: ..." of ours is the client's input[5]. The longest index first, so that
  // messages[1] is not found in messages[12].
  const auto rename = [&](const char* list, const std::vector<std::string>& paths) {
    for (size_t i = paths.size(); i-- > 0;) {
      const std::string ours = Printf("%s[%zu]", list, i);
      if (!error.message.starts_with(ours)) continue;
      error.message = paths[i] + error.message.substr(ours.size());
      return true;
    }
    return false;
  };
  if (!rename("messages", message_paths_)) rename("tools", tool_paths_);
  error.param = error.message.substr(0, error.message.find(':'));
  return error;
}

}  // namespace hearth
