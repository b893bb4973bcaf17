// SPDX-License-Identifier: Apache-2.0
#include "server/responses_items.h"

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

std::optional<ApiError> AddReasoning(const Json& item, const std::string& path, MessageList& out) {
  const Json* content = item.Find("content");
  if (content != nullptr && content->array() != nullptr && !content->array()->empty()) {
    ApiResult<std::string> text =
        ReadTextParts(*content, path + ".content", {"reasoning_text", "text"});
    if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
    out.AddThought(std::get<std::string>(text), path);
  } else if (const std::string* same = StringIn(item, "encrypted_content")) {
    out.AddThought(*same, path);  // what this server put there is the thoughts themselves
  }
  return std::nullopt;
}

std::optional<ApiError> AddCall(const Json& item, const std::string& path, MessageList& out) {
  const std::string *id = StringIn(item, "call_id"), *name = StringIn(item, "name");
  const std::string* arguments = StringIn(item, "arguments");
  if (id == nullptr) return BadField(path + ".call_id", "must be a string");
  if (name == nullptr) return BadField(path + ".name", "must be a string");
  if (arguments == nullptr) return BadField(path + ".arguments", "must be a string");
  out.AddCall(*id, *name, *arguments, path);
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

std::optional<ApiError> AddItems(const JsonArray& items, const std::string& path,
                                 MessageList& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = path + Printf("[%zu]", i);
    if (items[i].object() == nullptr) return BadField(at, "must be an object");
    const std::string* type = StringIn(items[i], "type");
    std::optional<ApiError> error;
    if (type == nullptr || *type == "message") {
      error = AddMessage(items[i], at, out);
    } else if (*type == "reasoning") {
      error = AddReasoning(items[i], at, out);
    } else if (*type == "function_call") {
      error = AddCall(items[i], at, out);
    } else if (*type == "function_call_output") {
      error = AddResult(items[i], at, out);
    } else {
      error = BadField(at + ".type", Quoted(*type) + " items are not read here");
      error->code = "unsupported_value";
    }
    if (error) return error;
  }
  return std::nullopt;
}

}  // namespace hearth
