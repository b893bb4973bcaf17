// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_items.h"

#include <utility>

namespace hearth {
namespace {

std::optional<ApiError> AddMessage(const Json& item, const std::string& path, MessageList& out) {
  const std::string* role = StringIn(item, "role");
  if (role == nullptr) return BadField(path + ".role", "must be a string");
  const Json* content = item.Find("content");
  if (content == nullptr) return BadField(path + ".content", "is missing");
  ApiResult<std::string> text =
      ReadTextParts(*content, path + ".content", {"input_text", "output_text", "text", "refusal"});
  if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
  auto& said = std::get<std::string>(text);
  if (*role == "assistant") {
    out.AddAnswer(said, path);
    return std::nullopt;
  }
  if (*role != "user" && *role != "system" && *role != "developer") {
    return BadField(path + ".role", "must be user, assistant, system or developer");
  }
  out.AddText(role->c_str(), std::move(said), path);
  return std::nullopt;
}

std::optional<ApiError> AddReasoning(const Json& item, const std::string& path, ItemSink& out) {
  const Json* content = item.Find("content");
  if (content != nullptr && content->array() != nullptr && !content->array()->empty()) {
    ApiResult<std::string> text =
        ReadTextParts(*content, path + ".content", {"reasoning_text", "text"});
    if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
    out.messages.AddThought(std::get<std::string>(text), path);
    return std::nullopt;
  }
  const std::string* sealed = StringIn(item, "encrypted_content");
  if (sealed == nullptr || sealed->empty()) return std::nullopt;
  const std::optional<std::string> thought = out.unseal(*sealed);
  if (!thought) {
    return BadField(path + ".encrypted_content",
                    "was not made by this server for this key, or before it restarted",
                    "invalid_encrypted_content");
  }
  out.messages.AddThought(*thought, path);
  return std::nullopt;
}

// `text`: the member that says what is called with.
std::optional<ApiError> AddCall(const Json& item, const std::string& path, const char* text,
                                ItemSink& out) {
  const std::string *id = StringIn(item, "call_id"), *name = StringIn(item, "name");
  const std::string *said = StringIn(item, text), *space = StringIn(item, "namespace");
  if (id == nullptr) return BadField(path + ".call_id", "must be a string");
  if (name == nullptr) return BadField(path + ".name", "must be a string");
  if (said == nullptr) return BadField(path + "." + text, "must be a string");
  const bool is_custom = text == std::string_view("input");
  out.messages.AddCall(*id, ToolFaces::ModelName(space == nullptr ? "" : *space, *name),
                       is_custom ? ArgumentsOfText(*said) : *said, path);
  return std::nullopt;
}

std::optional<ApiError> AddResult(const Json& item, const std::string& path, MessageList& out) {
  const std::string* id = StringIn(item, "call_id");
  if (id == nullptr) return BadField(path + ".call_id", "must be a string");
  const Json* output = item.Find("output");
  if (output == nullptr) return BadField(path + ".output", "is missing");
  ApiResult<std::string> text =
      ReadTextParts(*output, path + ".output", {"input_text", "output_text", "text"});
  if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
  out.AddToolResult(*id, std::get<std::string>(std::move(text)), path);
  return std::nullopt;
}

// Tools that an agent tells of in the middle of a conversation are tools like the others.
std::optional<ApiError> AddTools(const Json& item, const std::string& path, ItemSink& out) {
  const Json* tools = item.Find("tools");
  if (tools == nullptr) return BadField(path + ".tools", "is missing");
  JsonArray told;
  return ReadTools(*tools, path + ".tools", out.messages, out.faces, told);
}

std::optional<ApiError> AddItem(const Json& item, const std::string& path, ItemSink& out) {
  const std::string* given = StringIn(item, "type");
  const std::string type = given == nullptr ? "message" : *given;
  if (type == "message") return AddMessage(item, path, out.messages);
  if (type == "reasoning") return AddReasoning(item, path, out);
  if (type == "function_call") return AddCall(item, path, "arguments", out);
  if (type == "custom_tool_call") return AddCall(item, path, "input", out);
  if (type == "function_call_output" || type == "custom_tool_call_output") {
    return AddResult(item, path, out.messages);
  }
  if (type == "additional_tools") return AddTools(item, path, out);
  return BadField(path + ".type", Quoted(type) + " items are not read here", "unsupported_value");
}

}  // namespace

ApiResult<JsonArray> InputItems(const Json& input) {
  if (const std::string* text = input.string()) {
    return JsonArray{JsonObject{{"type", "message"}, {"role", "user"}, {"content", *text}}};
  }
  if (input.array() == nullptr) return BadField("input", "must be a string or an array of items");
  if (input.array()->empty()) return BadField("input", "must not be empty");
  if (input.array()->size() > 8192) return BadField("input", "at most 8192 items");
  return *input.array();
}

std::optional<ApiError> AddItems(const JsonArray& items, const std::string& path, ItemSink out) {
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = path + Printf("[%zu]", i);
    if (items[i].object() == nullptr) return BadField(at, "must be an object");
    if (auto error = AddItem(items[i], at, out)) return error;
  }
  return std::nullopt;
}

}  // namespace hearth
