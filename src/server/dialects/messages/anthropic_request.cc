// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/messages/anthropic_request.h"

#include <utility>

#include "server/dialects/message_list.h"
#include "server/dialects/peer_fields.h"
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
    {"chat_template_kwargs", kObject, kHonoured, 0, 0,
     "variables of the model's chat template, as in chat completions"},
    {"container", kAny, kRefused, 0, 0, "this server does not run code"},
    {"context_management", kAny, kNoEffect, 0, 0,
     "the model's own format says which earlier thoughts it is shown"},
    {"diagnostics", kAny, kRefused, 0, 0, "see the x-hearth-* headers"},
    {"inference_geo", kString, kNoEffect, 0, 0, "requests always run locally"},
    {"max_tokens", kInteger, kHonoured, 1, 1 << 27, "tokens of the reply, thoughts included"},
    {"mcp_servers", kAny, kRefused, 0, 0, "this server does not connect to other servers", "[]"},
    {"messages", kArray, kHonoured, 1, 4096,
     "the conversation; text, thinking and tool blocks; a last message of the assistant's is "
     "continued"},
    {"metadata", kObject, kNoEffect, 0, 0, "nothing is stored"},
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"output_config", kObject, kHonoured, 0, 0,
     "`effort`, and `format` with a JSON schema that is enforced token by token"},
    {"seed", kInteger, kHonoured, 0, 0, "the same seed and request give the same reply, always"},
    {"service_tier", kString, kNoEffect, 0, 0, "there is one tier"},
    {"speed", kString, kRefused, 0, 0, "all requests run at the same speed", "\"standard\""},
    {"stop_sequences", kArray, kHonoured, 0, 16, "never part of the reply"},
    {"stream", kBoolean, kHonoured, 0, 0, "server-sent events"},
    {"system", kAny, kHonoured, 0, 0, "a string or text blocks"},
    {"temperature", kNumber, kHonoured, 0, 2,
     "0 is the most likely token; unless given, what is recommended for the model, else 1"},
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

ApiStatus ReadSystem(const Json& system, MessageList& out) {
  HEARTH_ASSIGN(std::string joined, ReadTextParts(system, "system", {"text"}));
  if (!joined.empty()) out.AddText("system", std::move(joined), "system");
  return {};
}

ApiStatus ReadToolResult(const Json& block, const std::string& path, MessageList& out) {
  const std::string* id = StringIn(block, "tool_use_id");
  if (id == nullptr) return BadField(path + ".tool_use_id", "must be a string");
  std::string text;
  if (const Json* content = block.Find("content"); content != nullptr && !content->is_null()) {
    HEARTH_ASSIGN(text, ReadTextParts(*content, path + ".content", {"text"}));
  }
  const Json* is_error = block.Find("is_error");
  if (is_error != nullptr && is_error->boolean() != nullptr && *is_error->boolean()) {
    text = "error: " + text;
  }
  out.AddToolResult(*id, std::move(text), path);
  return {};
}

ApiStatus ReadUserBlock(const Json& block, const std::string& type, const std::string& path,
                        MessageList& out) {
  if (type == "tool_result") return ReadToolResult(block, path, out);
  if (type != "text")
    return Unsupported(path + ".type", Quoted(type) + " blocks are not supported");
  const std::string* text = StringIn(block, "text");
  if (text == nullptr) return BadField(path + ".text", "must be a string");
  out.AddText("user", *text, path);
  return {};
}

ApiStatus ReadAssistantBlock(const Json& block, const std::string& type, const std::string& path,
                             MessageList& out) {
  if (type == "redacted_thinking") return {};  // nobody here can read it
  if (type == "text" || type == "thinking") {
    const std::string* text = StringIn(block, type);
    if (text == nullptr) return BadField(path + "." + type, "must be a string");
    if (type == "text") {
      out.AddAnswer(*text, path);
    } else {
      out.AddThought(*text, path);
    }
    return {};
  }
  if (type != "tool_use")
    return Unsupported(path + ".type", Quoted(type) + " blocks are not supported");
  const std::string *id = StringIn(block, "id"), *name = StringIn(block, "name");
  const Json* input = block.Find("input");
  if (id == nullptr) return BadField(path + ".id", "must be a string");
  if (name == nullptr) return BadField(path + ".name", "must be a string");
  if (input == nullptr || input->object() == nullptr) {
    return BadField(path + ".input", "must be an object");
  }
  out.AddCall(*id, *name, WriteJson(*input), path);
  return {};
}

ApiStatus ReadMessage(const Json& message, const std::string& path, MessageList& out) {
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
    return {};
  }
  if (content->array() == nullptr) {
    return BadField(path + ".content", "must be a string or an array of blocks");
  }
  for (size_t i = 0; i < content->array()->size(); ++i) {
    const Json& block = (*content->array())[i];
    const std::string at = path + Printf(".content[%zu]", i);
    const std::string* type = StringIn(block, "type");
    if (type == nullptr) return BadField(at + ".type", "must be a string");
    HEARTH_TRY(is_assistant ? ReadAssistantBlock(block, *type, at, out)
                            : ReadUserBlock(block, *type, at, out));
  }
  return {};
}

ApiStatus ReadTools(const JsonArray& tools, MessageList& out) {
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string path = Printf("tools[%zu]", i);
    const std::string *type = StringIn(tools[i], "type"), *name = StringIn(tools[i], "name");
    if (type != nullptr && *type != "custom") {
      return Unsupported(path + ".type",
                         Quoted(*type) + ": only tools that the client runs are supported");
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
  return {};
}

ApiStatus ReadToolChoice(const Json& choice, TurnRequest& out) {
  const std::string *type = StringIn(choice, "type"), *name = StringIn(choice, "name");
  if (type == nullptr) return BadField("tool_choice.type", "must be a string");
  const Json* alone = choice.Find("disable_parallel_tool_use");
  out.parallel_calls = alone == nullptr || alone->boolean() == nullptr || !*alone->boolean();
  if (*type == "auto") return {};
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

ApiStatus ReadThinking(const Json& thinking, MessagesRequest& out) {
  const std::string* type = StringIn(thinking, "type");
  if (type == nullptr) return BadField("thinking.type", "must be a string");
  const std::string* display = StringIn(thinking, "display");
  out.shows_thinking = *type != "disabled" && (display == nullptr || *display != "omitted");
  if (*type == "adaptive") return {};
  if (*type == "disabled") {
    out.turn.reasoning_tokens = 0;
    return {};
  }
  if (*type != "enabled") return BadField("thinking.type", "must be enabled, adaptive or disabled");
  const Json* budget = thinking.Find("budget_tokens");
  const auto tokens = budget == nullptr ? std::nullopt : budget->integer();
  if (!tokens || *tokens < 1 || *tokens > 1 << 27) {
    return BadField("thinking.budget_tokens", "must be an integer of at least 1");
  }
  out.turn.reasoning_tokens = static_cast<int>(*tokens);
  return {};
}

ApiStatus ReadOutput(const Json& config, TurnRequest& out) {
  for (const auto& [name, value] : *config.object()) {
    const std::string path = "output_config." + name;
    if (value.is_null()) continue;
    if (name == "effort") {
      if (value.string() == nullptr) return BadField(path, "must be a string");
      HEARTH_TRY(ReadEffort(*value.string(), path, out));
    } else if (name == "format") {
      HEARTH_TRY(ReadResponseFormat(value, path, out.answer));
    } else {
      return UnknownField(path.substr(0, 120));
    }
  }
  return {};
}

ApiStatus CheckThread(const Fields& fields) {
  const Json* thread = fields.find("thread");
  if (thread == nullptr) return {};
  const std::string* type = StringIn(*thread, "type");
  if (type != nullptr && *type == "create") return {};
  if (type == nullptr || *type != "continue") {
    return BadField("thread.type", "must be create or continue");
  }
  ApiError error =
      BadField("thread", "this server does not store messages; send the whole conversation");
  error.status = 404;
  error.code = "thread_not_found";
  return error;
}

ApiStatus ReadSettings(const Fields& fields, MessagesRequest& out) {
  TurnRequest& turn = out.turn;
  turn.model = fields.text("model").value_or("");
  turn.max_tokens = static_cast<int>(fields.integer("max_tokens").value_or(0));
  turn.streams = fields.flag("stream", false);
  turn.cache_salt = fields.text("cache_salt").value_or("");
  fields.Set("temperature", turn.sampling.temperature);
  fields.Set("top_p", turn.sampling.top_p);
  fields.Set("top_k", turn.sampling.top_k);
  if (const auto seed = fields.integer("seed")) {
    turn.sampling.seed = static_cast<uint64_t>(*seed);
    turn.has_seed = true;
  }
  if (const Json* stops = fields.find("stop_sequences")) {
    for (const Json& stop : *stops->array()) {
      if (stop.string() == nullptr) return BadField("stop_sequences", "must contain only strings");
      turn.stops.push_back(*stop.string());
    }
    const Status status = StopStrings::Make(turn.stops).status();
    if (!status.ok()) return BadField("stop_sequences", status.message());
  }
  if (const Json* choice = fields.find("tool_choice")) {
    HEARTH_TRY(ReadToolChoice(*choice, turn));
  }
  if (const Json* config = fields.find("output_config")) {
    HEARTH_TRY(ReadOutput(*config, turn));
  }
  if (const Json* variables = fields.find("chat_template_kwargs")) {
    HEARTH_TRY(ReadTemplateVariables(*variables, "chat_template_kwargs", turn));
  }
  if (const Json* thinking = fields.find("thinking")) return ReadThinking(*thinking, out);
  return {};
}

}  // namespace

std::span<const Field> MessagesFields() { return kFields; }

ApiResult<MessagesRequest> ReadMessagesRequest(const Json& body, bool counts) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kFields));
  if (!counts && !fields.integer("max_tokens")) return BadField("max_tokens", "is missing");
  HEARTH_TRY(CheckThread(fields));
  const Json* messages = fields.find("messages");
  if (messages == nullptr) return BadField("messages", "is missing");
  MessageList list;
  if (const Json* system = fields.find("system")) {
    HEARTH_TRY(ReadSystem(*system, list));
  }
  for (size_t i = 0; i < messages->array()->size(); ++i) {
    const std::string path = Printf("messages[%zu]", i);
    HEARTH_TRY(ReadMessage((*messages->array())[i], path, list));
  }
  if (const Json* tools = fields.find("tools")) {
    HEARTH_TRY(ReadTools(*tools->array(), list));
  }
  MessagesRequest out;
  HEARTH_ASSIGN(out.turn.conversation, std::move(list).Parse());
  HEARTH_TRY(ReadSettings(fields, out));
  return out;
}

}  // namespace hearth
