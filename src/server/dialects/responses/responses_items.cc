// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_items.h"

#include <utility>

namespace hearth {
namespace {

ApiStatus AddMessage(const Json& item, const std::string& path, MessageList& out) {
  const std::string* role = StringIn(item, "role");
  if (role == nullptr) return BadField(path + ".role", "must be a string");
  const Json* content = item.Find("content");
  if (content == nullptr) return BadField(path + ".content", "is missing");
  HEARTH_ASSIGN(std::string said, ReadTextParts(*content, path + ".content",
                                                {"input_text", "output_text", "text", "refusal"}));
  if (*role == "assistant") {
    out.AddAnswer(said, path);
    return {};
  }
  if (*role != "user" && *role != "system" && *role != "developer") {
    return BadField(path + ".role", "must be user, assistant, system or developer");
  }
  out.AddText(role->c_str(), std::move(said), path);
  return {};
}

ApiStatus AddReasoning(const Json& item, const std::string& path, ItemSink& out) {
  const Json* content = item.Find("content");
  if (content != nullptr && content->array() != nullptr && !content->array()->empty()) {
    HEARTH_ASSIGN(std::string text,
                  ReadTextParts(*content, path + ".content", {"reasoning_text", "text"}));
    out.messages.AddThought(text, path);
    return {};
  }
  const std::string* encrypted = StringIn(item, "encrypted_content");
  if (encrypted == nullptr || encrypted->empty()) return {};
  const std::optional<std::string> thought = out.decrypt(*encrypted);
  if (!thought) {
    return BadField(
        path + ".encrypted_content",
        "cannot be decrypted: it comes from another server or key, or from before a restart",
        "invalid_encrypted_content");
  }
  out.messages.AddThought(*thought, path);
  return {};
}

// `text`: the member that says what is called with.
ApiStatus AddCall(const Json& item, const std::string& path, const char* text, ItemSink& out) {
  const std::string *id = StringIn(item, "call_id"), *name = StringIn(item, "name");
  const std::string *said = StringIn(item, text), *space = StringIn(item, "namespace");
  if (id == nullptr) return BadField(path + ".call_id", "must be a string");
  if (name == nullptr) return BadField(path + ".name", "must be a string");
  if (said == nullptr) return BadField(path + "." + text, "must be a string");
  const bool is_custom = text == std::string_view("input");
  out.messages.AddCall(*id, ToolAliases::ModelName(space == nullptr ? "" : *space, *name),
                       is_custom ? ArgumentsOfText(*said) : *said, path);
  return {};
}

ApiStatus AddResult(const Json& item, const std::string& path, MessageList& out) {
  const std::string* id = StringIn(item, "call_id");
  if (id == nullptr) return BadField(path + ".call_id", "must be a string");
  const Json* output = item.Find("output");
  if (output == nullptr) return BadField(path + ".output", "is missing");
  HEARTH_ASSIGN(std::string text,
                ReadTextParts(*output, path + ".output", {"input_text", "output_text", "text"}));
  out.AddToolResult(*id, std::move(text), path);
  return {};
}

// Tools that an agent tells of in the middle of a conversation are tools like the others.
ApiStatus AddTools(const Json& item, const std::string& path, ItemSink& out) {
  const Json* tools = item.Find("tools");
  if (tools == nullptr) return BadField(path + ".tools", "is missing");
  JsonArray told;
  return ReadTools(*tools, path + ".tools", out.messages, out.aliases, told);
}

ApiStatus AddItem(const Json& item, const std::string& path, ItemSink& out) {
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
  return BadField(path + ".type", Quoted(type) + " items are not supported", "unsupported_value");
}

}  // namespace

ApiResult<JsonArray> InputItems(const Json& input) {
  if (const std::string* text = input.string()) {
    return JsonArray{JsonObject{{"type", "message"}, {"role", "user"}, {"content", *text}}};
  }
  if (input.array() == nullptr) return BadField("input", "must be a string or an array of items");
  if (input.array()->empty()) return BadField("input", "must not be empty");
  if (input.array()->size() > 8192) return BadField("input", "must have at most 8192 items");
  return *input.array();
}

ApiStatus AddItems(const JsonArray& items, const std::string& path, ItemSink out) {
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string at = path + Printf("[%zu]", i);
    if (items[i].object() == nullptr) return BadField(at, "must be an object");
    HEARTH_TRY(AddItem(items[i], at, out));
  }
  return {};
}

}  // namespace hearth
