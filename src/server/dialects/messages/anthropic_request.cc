// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/messages/anthropic_request.h"

#include <utility>

#include "server/dialects/message_list.h"
#include "server/dialects/sampling_fields.h"
#include "text/stop_strings.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kFields[] = {
    {"cache_control", kAny, kNoEffect, 0, 0, "every prefix is cached, marked or not"},
    {"cache_salt", kString, kHonoured, 1, 256,
     "requests share cached prefixes only within one salt; your key's own is always part of it"},
    {"container", kAny, kRefused, 0, 0, "this server runs no code"},
    {"context_management", kAny, kNoEffect, 0, 0,
     "the model's own format says which earlier thoughts it is shown"},
    {"diagnostics", kAny, kRefused, 0, 0, "see the x-hearth-* headers"},
    {"inference_geo", kString, kNoEffect, 0, 0, "requests always run locally"},
    {"max_tokens", kInteger, kHonoured, 1, 1 << 27, "tokens of the reply, thoughts included"},
    {"mcp_servers", kAny, kRefused, 0, 0, "this server opens no connections", "[]"},
    {"messages", kArray, kHonoured, 1, 4096, "the conversation; text, thinking and tool blocks"},
    {"metadata", kObject, kNoEffect, 0, 0, "nothing is stored"},
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"output_config", kObject, kHonoured, 0, 0,
     "`effort`, and `format` with a JSON schema that is enforced token by token"},
    {"seed", kInteger, kHonoured, 0, 0, "the same seed and request give the same reply, always"},
    {"service_tier", kString, kNoEffect, 0, 0, "there is one tier"},
    {"speed", kString, kRefused, 0, 0, "there is one speed", "\"standard\""},
    {"stop_sequences", kArray, kHonoured, 0, 16, "never part of the reply"},
    {"stream", kBoolean, kHonoured, 0, 0, "server-sent events"},
    {"system", kAny, kHonoured, 0, 0, "a string or text blocks"},
    {"temperature", kNumber, kHonoured, 0, 2, "0 is the most likely token; 1 unless given"},
    {"thinking", kObject, kHonoured, 0, 0,
     "`enabled` with budget_tokens, `adaptive` or `disabled`; unless given the model thinks as it "
     "likes and its thoughts are not shown"},
    {"thread", kObject, kHonoured, 0, 0,
     "`create` has no effect, messages are not stored; `continue` is a 404 on which the SDKs send "
     "the whole conversation"},
    {"tool_choice", kObject, kHonoured, 0, 0,
     "auto, any, tool or none, and disable_parallel_tool_use; enforced token by token"},
    {"tools", kArray, kHonoured, 0, 128, "tools of the client's own"},
    {"top_k", kInteger, kHonoured, 0, 1 << 20, "keep so many of the likeliest tokens; 0: all"},
    {"top_p", kNumber, kHonoured, 0, 1, "keep the likeliest tokens up to this share"},
    {"user_profile_id", kString, kNoEffect, 0, 0, "nothing is stored"},
    {"workspace_id", kString, kNoEffect, 0, 0, "keys say who asks"},
};

ApiError Unsupported(const std::string& path, const std::string& why) {
  return BadField(path, why, "unsupported_value");
}

std::optional<ApiError> ReadSystem(const Json& system, MessageList& out) {
  ApiResult<std::string> text = ReadTextParts(system, "system", {"text"});
  if (auto* error = std::get_if<ApiError>(&text)) return std::move(*error);
  auto& joined = std::get<std::string>(text);
  if (!joined.empty()) out.AddText("system", std::move(joined), "system");
  return std::nullopt;
}

std::optional<ApiError> ReadToolResult(const Json& block, const std::string& path,
                                       MessageList& out) {
  const std::string* id = StringIn(block, "tool_use_id");
  if (id == nullptr) return BadField(path + ".tool_use_id", "must be a string");
  std::string text;
  if (const Json* content = block.Find("content"); content != nullptr && !content->is_null()) {
    ApiResult<std::string> read = ReadTextParts(*content, path + ".content", {"text"});
    if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
    text = std::get<std::string>(std::move(read));
  }
  const Json* is_error = block.Find("is_error");
  if (is_error != nullptr && is_error->boolean() != nullptr && *is_error->boolean()) {
    text = "error: " + text;
  }
  out.AddToolResult(*id, std::move(text), path);
  return std::nullopt;
}

std::optional<ApiError> ReadUserBlock(const Json& block, const std::string& type,
                                      const std::string& path, MessageList& out) {
  if (type == "tool_result") return ReadToolResult(block, path, out);
  if (type != "text") return Unsupported(path + ".type", Quoted(type) + " blocks are not read");
  const std::string* text = StringIn(block, "text");
  if (text == nullptr) return BadField(path + ".text", "must be a string");
  out.AddText("user", *text, path);
  return std::nullopt;
}

std::optional<ApiError> ReadAssistantBlock(const Json& block, const std::string& type,
                                           const std::string& path, MessageList& out) {
  if (type == "redacted_thinking") return std::nullopt;  // nobody here can read it
  if (type == "text" || type == "thinking") {
    const std::string* text = StringIn(block, type);
    if (text == nullptr) return BadField(path + "." + type, "must be a string");
    if (type == "text") {
      out.AddAnswer(*text, path);
    } else {
      out.AddThought(*text, path);
    }
    return std::nullopt;
  }
  if (type != "tool_use") return Unsupported(path + ".type", Quoted(type) + " blocks are not read");
  const std::string *id = StringIn(block, "id"), *name = StringIn(block, "name");
  const Json* input = block.Find("input");
  if (id == nullptr) return BadField(path + ".id", "must be a string");
  if (name == nullptr) return BadField(path + ".name", "must be a string");
  if (input == nullptr || input->object() == nullptr) {
    return BadField(path + ".input", "must be an object");
  }
  out.AddCall(*id, *name, WriteJson(*input), path);
  return std::nullopt;
}

std::optional<ApiError> ReadMessage(const Json& message, const std::string& path,
                                    MessageList& out) {
  const std::string* role = StringIn(message, "role");
  const bool is_assistant = role != nullptr && *role == "assistant";
  if (role == nullptr || (!is_assistant && *role != "user" && *role != "system")) {
    return BadField(path + ".role", "must be user, assistant or system");
  }
  const Json* content = message.Find("content");
  if (content == nullptr) return BadField(path + ".content", "is missing");
  if (content->string() != nullptr) {
    if (is_assistant) {
      out.AddAnswer(*content->string(), path);
    } else {
      out.AddText(role->c_str(), *content->string(), path);
    }
    return std::nullopt;
  }
  if (content->array() == nullptr) {
    return BadField(path + ".content", "must be a string or an array of blocks");
  }
  for (size_t i = 0; i < content->array()->size(); ++i) {
    const Json& block = (*content->array())[i];
    const std::string at = path + Printf(".content[%zu]", i);
    const std::string* type = StringIn(block, "type");
    if (type == nullptr) return BadField(at + ".type", "must be a string");
    auto error = is_assistant ? ReadAssistantBlock(block, *type, at, out)
                              : ReadUserBlock(block, *type, at, out);
    if (error) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> ReadTools(const JsonArray& tools, MessageList& out) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string path = Printf("tools[%zu]", i);
    const std::string *type = StringIn(tools[i], "type"), *name = StringIn(tools[i], "name");
    if (type != nullptr && *type != "custom") {
      return Unsupported(path + ".type", Quoted(*type) + ": only tools of the client's own");
    }
    if (name == nullptr) return BadField(path + ".name", "must be a string");
    const Json* schema = tools[i].Find("input_schema");
    if (schema == nullptr || schema->object() == nullptr) {
      return BadField(path + ".input_schema", "must be an object");
    }
    JsonObject function{{"name", *name}, {"parameters", *schema}};
    if (const std::string* about = StringIn(tools[i], "description")) {
      function.push_back({"description", *about});
    }
    out.AddTool(std::move(function), path);
  }
  return std::nullopt;
}

std::optional<ApiError> ReadToolChoice(const Json& choice, TurnRequest& out) {
  const std::string *type = StringIn(choice, "type"), *name = StringIn(choice, "name");
  if (type == nullptr) return BadField("tool_choice.type", "must be a string");
  const Json* alone = choice.Find("disable_parallel_tool_use");
  out.parallel_calls = alone == nullptr || alone->boolean() == nullptr || !*alone->boolean();
  if (*type == "auto") return std::nullopt;
  if (*type == "none") {
    out.tool_choice = ToolChoice::kNone;
  } else if (*type == "any") {
    out.tool_choice = ToolChoice::kRequired;
  } else if (*type == "tool") {
    if (name == nullptr) return BadField("tool_choice.name", "must be a string");
    out.tool_choice = ToolChoice::kNamed;
    out.named_tool = *name;
  } else {
    return BadField("tool_choice.type", "must be auto, any, tool or none");
  }
  return CheckToolChoice(out);
}

std::optional<ApiError> ReadThinking(const Json& thinking, MessagesRequest& out) {
  const std::string* type = StringIn(thinking, "type");
  if (type == nullptr) return BadField("thinking.type", "must be a string");
  const std::string* display = StringIn(thinking, "display");
  out.shows_thinking = *type != "disabled" && (display == nullptr || *display != "omitted");
  if (*type == "adaptive") return std::nullopt;
  if (*type == "disabled") {
    out.turn.reasoning_tokens = 0;
    return std::nullopt;
  }
  if (*type != "enabled") return BadField("thinking.type", "must be enabled, adaptive or disabled");
  const Json* budget = thinking.Find("budget_tokens");
  const auto tokens = budget == nullptr ? std::nullopt : budget->integer();
  if (!tokens || *tokens < 1 || *tokens > 1 << 27) {
    return BadField("thinking.budget_tokens", "must be an integer of at least 1");
  }
  out.turn.reasoning_tokens = static_cast<int>(*tokens);
  return std::nullopt;
}

std::optional<ApiError> ReadOutput(const Json& config, TurnRequest& out) {
  for (const auto& [name, value] : *config.object()) {
    const std::string path = "output_config." + name;
    if (value.is_null()) continue;
    if (name == "effort") {
      if (value.string() == nullptr) return BadField(path, "must be a string");
      if (auto error = ReadEffort(*value.string(), path, out)) return error;
    } else if (name == "format") {
      if (auto error = ReadResponseFormat(value, path, out.answer)) return error;
    } else {
      return UnknownField(path.substr(0, 120));
    }
  }
  return std::nullopt;
}

std::optional<ApiError> CheckThread(const Fields& fields) {
  const Json* thread = fields.find("thread");
  if (thread == nullptr) return std::nullopt;
  const std::string* type = StringIn(*thread, "type");
  if (type != nullptr && *type == "create") return std::nullopt;
  if (type == nullptr || *type != "continue") {
    return BadField("thread.type", "must be create or continue");
  }
  ApiError error = BadField("thread", "messages are not stored here; send all of them");
  error.status = 404;
  error.code = "thread_not_found";
  return error;
}

std::optional<ApiError> ReadSettings(const Fields& fields, MessagesRequest& out) {
  TurnRequest& turn = out.turn;
  turn.model = fields.text("model").value_or("");
  turn.max_tokens = static_cast<int>(fields.integer("max_tokens").value_or(0));
  turn.streams = fields.flag("stream", false);
  turn.cache_salt = fields.text("cache_salt").value_or("");
  if (const auto value = fields.number("temperature")) {
    turn.sampling.temperature = static_cast<float>(*value);
  }
  if (const auto value = fields.number("top_p")) turn.sampling.top_p = static_cast<float>(*value);
  turn.sampling.top_k = static_cast<int>(fields.integer("top_k").value_or(0));
  if (const auto seed = fields.integer("seed")) {
    turn.sampling.seed = static_cast<uint64_t>(*seed);
    turn.has_seed = true;
  }
  if (const Json* stops = fields.find("stop_sequences")) {
    for (const Json& stop : *stops->array()) {
      if (stop.string() == nullptr) return BadField("stop_sequences", "must hold strings");
      turn.stops.push_back(*stop.string());
    }
    const Status status = StopStrings::Make(turn.stops).status();
    if (!status.ok()) return BadField("stop_sequences", status.message());
  }
  if (const Json* choice = fields.find("tool_choice")) {
    if (auto error = ReadToolChoice(*choice, turn)) return error;
  }
  if (const Json* config = fields.find("output_config")) {
    if (auto error = ReadOutput(*config, turn)) return error;
  }
  if (const Json* thinking = fields.find("thinking")) return ReadThinking(*thinking, out);
  return std::nullopt;
}

}  // namespace

std::span<const Field> MessagesFields() { return kFields; }

ApiResult<MessagesRequest> ReadMessagesRequest(const Json& body, bool counts) {
  ApiResult<Fields> read = ReadFields(body, kFields);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  const Fields& fields = std::get<Fields>(read);
  if (!counts && !fields.integer("max_tokens")) return BadField("max_tokens", "is missing");
  if (auto error = CheckThread(fields)) return *std::move(error);
  const Json* messages = fields.find("messages");
  if (messages == nullptr) return BadField("messages", "is missing");
  MessageList list;
  if (const Json* system = fields.find("system")) {
    if (auto error = ReadSystem(*system, list)) return *std::move(error);
  }
  for (size_t i = 0; i < messages->array()->size(); ++i) {
    const std::string path = Printf("messages[%zu]", i);
    if (auto error = ReadMessage((*messages->array())[i], path, list)) return *std::move(error);
  }
  if (list.ends_with_assistant()) {
    return Unsupported("messages",
                       "the last one must not be the assistant's: a reply is begun by "
                       "the model");
  }
  if (const Json* tools = fields.find("tools")) {
    if (auto error = ReadTools(*tools->array(), list)) return *std::move(error);
  }
  ApiResult<Conversation> conversation = std::move(list).Parse();
  if (auto* error = std::get_if<ApiError>(&conversation)) return std::move(*error);
  MessagesRequest out;
  out.turn.conversation = std::get<Conversation>(std::move(conversation));
  if (auto error = ReadSettings(fields, out)) return *std::move(error);
  return out;
}

}  // namespace hearth
