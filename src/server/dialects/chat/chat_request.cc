// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/chat/chat_request.h"

#include <utility>

#include "server/dialects/peer_fields.h"
#include "server/dialects/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

// What only chat has; the rest is in sampling_fields.cc. docs/api.md prints both.
constexpr Field kOwnFields[] = {
    {"add_generation_prompt", kBoolean, kHonoured, 0, 0,
     "false only where the last message is continued, as continue_final_message says"},
    {"audio", kAny, kRefused, 0, 0, "the models produce only text"},
    {"chat_template_kwargs", kObject, kHonoured, 0, 0,
     "variables of the model's chat template, such as `enable_thinking`: at most 16 strings, "
     "numbers and booleans that the template names; `reasoning_effort` works with every model"},
    {"continue_final_message", kBoolean, kHonoured, 0, 0,
     "a last message of the assistant's is continued: the reply is what follows it; true unless "
     "given where there is one; false begins another message after it"},
    {"enable_thinking", kBoolean, kHonoured, 0, 0, "as chat_template_kwargs.enable_thinking"},
    {"function_call", kAny, kRefused, 0, 0, "use tool_choice instead"},
    {"functions", kAny, kRefused, 0, 0, "use tools instead"},
    {"include_reasoning", kBoolean, kRefused, 0, 0, "reasoning is always included", "true"},
    {"logprobs", kBoolean, kHonoured, 0, 0, "log-probabilities of the answer's tokens"},
    {"max_completion_tokens", kInteger, kHonoured, 1, 1 << 27, "the newer name of max_tokens"},
    {"max_reasoning_tokens", kInteger, kHonoured, 0, 1 << 27,
     "after so many tokens of reasoning the answer must begin"},
    {"messages", kArray, kHonoured, 1, 4096,
     "the conversation; a last message of the assistant's is continued"},
    {"metadata", kObject, kNoEffect, 0, 0, "nothing is stored"},
    {"modalities", kAny, kRefused, 0, 0, "only text is produced", "[\"text\"]"},
    {"moderation", kAny, kRefused, 0, 0, "there is no moderation"},
    {"parallel_tool_calls", kBoolean, kHonoured, 0, 0, "whether one reply may hold several calls"},
    {"prediction", kAny, kRefused, 0, 0, "not implemented"},
    {"prompt_cache_key", kString, kNoEffect, 0, 0, "the cache is found by content"},
    {"prompt_cache_retention", kAny, kNoEffect, 0, 0, "the cache keeps what is used"},
    {"reasoning", kObject, kHonoured, 0, 0, "`effort`, as reasoning_effort"},
    {"reasoning_effort", kString, kHonoured, 0, 16,
     "none, minimal, low, medium, high, xhigh or max; minimal is low, xhigh and max are high"},
    {"response_format", kObject, kHonoured, 0, 0,
     "`text`, `json_object` or `json_schema`; a schema is enforced token by token"},
    {"safety_identifier", kString, kNoEffect, 0, 0, "nothing is stored"},
    {"service_tier", kString, kNoEffect, 0, 0, "there is one tier"},
    {"store", kBoolean, kRefused, 0, 0, "chat completions are not stored", "false"},
    {"thinking_token_budget", kInteger, kHonoured, 0, 1 << 27, "as max_reasoning_tokens"},
    {"tool_choice", kAny, kHonoured, 0, 0,
     "auto, none, required, or one function by name; enforced token by token"},
    {"tools", kArray, kHonoured, 0, 128, "functions the model may call"},
    {"top_logprobs", kInteger, kHonoured, 0, 20, "so many of the likeliest tokens beside each"},
    {"verbosity", kString, kForeign, 0, 0, "the models do not have this setting", "\"medium\""},
    {"web_search_options", kAny, kRefused, 0, 0, "this server does not connect to other servers"},
};

ApiStatus ReadToolChoice(const Fields& fields, TurnRequest& out) {
  out.parallel_calls = fields.flag("parallel_tool_calls", true);
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return {};
  if (const std::string* word = choice->string()) {
    if (*word == "auto") return {};
    if (*word == "none") {
      out.tool_choice = ToolChoice::kNone;
      return {};
    }
    if (*word != "required") {
      return BadField("tool_choice", "must be auto, none, required or a function");
    }
    out.tool_choice = ToolChoice::kRequired;
  } else {
    const Json* function = choice->Find("function");
    const Json* name = function == nullptr ? nullptr : function->Find("name");
    if (name == nullptr || name->string() == nullptr) {
      return BadField("tool_choice",
                      R"(must be a string or {"type": "function", "function": {"name": ...}})",
                      "unsupported_value");
    }
    out.tool_choice = ToolChoice::kNamed;
    out.named_tool = *name->string();
  }
  return CheckToolChoice(out);
}

ApiStatus ReadEnd(const Fields& fields, TurnRequest& out) {
  const Json* continues = fields.find("continue_final_message");
  if (continues != nullptr) out.continues = *continues->boolean();
  const Json* begins = fields.find("add_generation_prompt");
  if (begins == nullptr) return {};
  if (*begins->boolean() && out.continues.value_or(false)) {
    return BadField("add_generation_prompt", "must be false with continue_final_message: true");
  }
  if (!*begins->boolean() && !out.continues.value_or(true)) {
    return BadField("add_generation_prompt", "must be true with continue_final_message: false");
  }
  out.continues = !*begins->boolean();
  return {};
}

ApiStatus ReadVariables(const Fields& fields, TurnRequest& out) {
  const Json* variables = fields.find("chat_template_kwargs");
  if (variables != nullptr) {
    HEARTH_TRY(ReadTemplateVariables(*variables, "chat_template_kwargs", out));
  }
  const Json* thinks = fields.find("enable_thinking");
  if (thinks == nullptr) return {};
  if (variables != nullptr && variables->Find("enable_thinking") != nullptr) {
    return BadField("enable_thinking", "also stands in \"chat_template_kwargs\"; send it once");
  }
  out.conversation.template_variables.push_back({"enable_thinking", *thinks});
  return {};
}

ApiStatus ReadReasoning(const Fields& fields, TurnRequest& out) {
  if (const auto bound = fields.integer("max_reasoning_tokens")) {
    out.reasoning_tokens = static_cast<int>(*bound);
  }
  if (const auto bound = fields.integer("thinking_token_budget")) {
    if (out.reasoning_tokens.value_or(static_cast<int>(*bound)) != *bound) {
      return BadField("thinking_token_budget", "differs from \"max_reasoning_tokens\"; send one");
    }
    out.reasoning_tokens = static_cast<int>(*bound);
  }
  HEARTH_TRY(ReadVariables(fields, out));
  const Json* object = fields.find("reasoning");
  for (const auto& [member, value] : object == nullptr ? JsonObject() : *object->object()) {
    const std::string path = "reasoning." + member;
    if (value.is_null()) continue;
    if (member != "effort" || value.string() == nullptr) {
      return BadField(path.substr(0, 120), "not supported", "unsupported_parameter");
    }
    HEARTH_TRY(ReadEffort(*value.string(), path, out));
  }
  if (const auto effort = fields.text("reasoning_effort")) {
    return ReadEffort(*effort, "reasoning_effort", out);
  }
  return {};
}

ApiStatus ReadLogprobs(const Fields& fields, SamplingParams& out) {
  const bool wanted = fields.flag("logprobs", false);
  const auto top = fields.integer("top_logprobs");
  if (top && *top > 0 && !wanted) return BadField("top_logprobs", "needs logprobs: true");
  if (wanted) out.num_logprobs = static_cast<int>(top.value_or(0));
  return {};
}

const std::vector<Field>& Table() {
  static const std::vector<Field> table = JoinFields(kOwnFields, SharedFields());
  return table;
}

}  // namespace

std::span<const Field> ChatFields() { return Table(); }

ApiResult<TurnRequest> ReadChatRequest(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, Table()));
  TurnRequest out;
  // Effort has more spellings than a conversation knows; it is read below.
  JsonObject conversation_only;
  for (const char* name : {"messages", "tools"}) {
    if (const Json* value = fields.find(name)) conversation_only.push_back({name, *value});
  }
  Result<Conversation> conversation = ParseConversation(Json(std::move(conversation_only)));
  if (!conversation.ok()) {
    ApiError error = FromStatus(conversation.status());
    error.param = error.message.substr(0, error.message.find(':'));
    return error;
  }
  out.conversation = *std::move(conversation);
  HEARTH_TRY(ReadShared(fields, out));
  if (fields.integer("max_tokens").value_or(1) == 0) {
    return BadField("max_tokens", "must be at least 1 in chat completions");
  }
  HEARTH_TRY(ReadEnd(fields, out));
  HEARTH_TRY(ReadToolChoice(fields, out));
  HEARTH_TRY(ReadReasoning(fields, out));
  HEARTH_TRY(ReadLogprobs(fields, out.sampling));
  if (const Json* format = fields.find("response_format")) {
    HEARTH_TRY(ReadResponseFormat(*format, "response_format", out.answer));
  }
  if (const auto max_tokens = fields.integer("max_completion_tokens")) {
    out.max_tokens = static_cast<int>(*max_tokens);
  }
  return out;
}

}  // namespace hearth
