// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/ollama/ollama_messages.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/dialects/message_list.h"

namespace hearth {
namespace {

struct WaitingCall {
  std::string id, name;
};
using WaitingCalls = std::vector<WaitingCall>;

const Json* Present(const Json& object, std::string_view name) {
  const Json* member = object.Find(name);
  return member == nullptr || member->is_null() ? nullptr : member;
}

ApiResult<std::string> OptionalText(const Json& message, const char* name,
                                    const std::string& path) {
  const Json* member = Present(message, name);
  if (member == nullptr) return std::string();
  if (member->string() == nullptr) return BadField(path + "." + name, "must be a string");
  return *member->string();
}

ApiStatus RefuseImages(const Json& message, const std::string& path) {
  const Json* images = Present(message, "images");
  if (images == nullptr || (images->array() != nullptr && images->array()->empty())) return {};
  return BadField(path + ".images", "not supported: the models read only text",
                  "unsupported_value");
}

// Calls get an id, so that results can be told which one they answer. What is wrong with a call is
// found by the parser of conversations.
Json NumberedCalls(const JsonArray& calls, size_t index, WaitingCalls& waiting) {
  JsonArray out;
  for (const Json& call : calls) {
    const std::string* id = StringIn(call, "id");
    const Json* function = call.Find("function");
    const std::string* name = function == nullptr ? nullptr : StringIn(*function, "name");
    WaitingCall named{
        id != nullptr && !id->empty() ? *id : Printf("call_%zu_%zu", index, out.size()),
        name == nullptr ? "" : *name};
    JsonObject numbered{{"id", named.id}, {"type", "function"}};
    if (function != nullptr) numbered.push_back({"function", *function});
    out.push_back(std::move(numbered));
    waiting.push_back(std::move(named));
  }
  return out;
}

// Which call a result is for: the one it names by id; else the first that waits for a result of
// that tool; else, when it names nothing, the first that waits.
ApiStatus NameCall(const Json& message, const std::string& path, WaitingCalls& waiting,
                   JsonObject& out) {
  HEARTH_ASSIGN(const std::string id, OptionalText(message, "tool_call_id", path));
  HEARTH_ASSIGN(std::string name, OptionalText(message, "tool_name", path));
  if (name.empty()) {
    HEARTH_ASSIGN(name, OptionalText(message, "name", path));
  }
  const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const WaitingCall& call) {
    return id.empty() ? name.empty() || call.name == name : call.id == id;
  });
  if (found != waiting.end()) {
    out.push_back({"tool_call_id", found->id});
    waiting.erase(found);
  } else if (!name.empty()) {
    out.push_back({"name", name});
  } else if (!id.empty()) {
    return BadField(path + ".tool_call_id", "does not match any tool call that waits for a result");
  } else {
    return BadField(path + ".tool_name", "is missing, and no tool call waits for a result");
  }
  return {};
}

ApiResult<Json> AsOpenAiMessage(const Json& message, size_t index, WaitingCalls& waiting) {
  const std::string path = Printf("messages[%zu]", index);
  if (message.object() == nullptr) return BadField(path, "must be an object");
  const std::string* role = StringIn(message, "role");
  if (role == nullptr) return BadField(path + ".role", "must be a string");
  HEARTH_TRY(RefuseImages(message, path));
  JsonObject out{{"role", *role}};
  const Json* content = Present(message, "content");
  out.push_back({"content", content == nullptr ? Json("") : *content});
  if (*role == "assistant") {
    HEARTH_ASSIGN(const std::string thinking, OptionalText(message, "thinking", path));
    if (!thinking.empty()) out.push_back({"reasoning", thinking});
  }
  if (const Json* calls = Present(message, "tool_calls")) {
    if (calls->array() == nullptr) return BadField(path + ".tool_calls", "must be an array");
    if (!calls->array()->empty()) {
      out.push_back({"tool_calls", NumberedCalls(*calls->array(), index, waiting)});
    }
  }
  if (*role == "tool") HEARTH_TRY(NameCall(message, path, waiting, out));
  return Json(std::move(out));
}

}  // namespace

ApiResult<Conversation> ReadOllamaMessages(const JsonArray& messages, const Json* tools) {
  WaitingCalls waiting;
  JsonArray converted;
  for (size_t i = 0; i < messages.size(); ++i) {
    HEARTH_ASSIGN(Json message, AsOpenAiMessage(messages[i], i, waiting));
    converted.push_back(std::move(message));
  }
  JsonObject body{{"messages", std::move(converted)}};
  if (tools != nullptr) body.push_back({"tools", *tools});
  // Messages stand where they stood, so its paths are the client's.
  Result<Conversation> conversation = ParseConversation(Json(std::move(body)));
  if (conversation.ok()) return *std::move(conversation);
  ApiError error = FromStatus(conversation.status());
  error.param = error.message.substr(0, error.message.find(':'));
  return error;
}

}  // namespace hearth
