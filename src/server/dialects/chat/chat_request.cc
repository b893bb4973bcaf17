// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/chat/chat_request.h"

#include <utility>

#include "server/dialects/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

// What only chat has; the rest is in sampling_fields.cc. docs/api.md prints both.
constexpr Field kOwnFields[] = {
    {"audio", kAny, kRefused, 0, 0, "the models write text"},
    {"chat_template_kwargs", kObject, kHonoured, 0, 0,
     "only `reasoning_effort`; templates take no other variables from requests"},
    {"function_call", kAny, kRefused, 0, 0, "the old form of tool_choice"},
    {"functions", kAny, kRefused, 0, 0, "the old form of tools"},
    {"include_reasoning", kBoolean, kRefused, 0, 0, "reasoning is always told", "true"},
    {"logprobs", kBoolean, kHonoured, 0, 0, "log-probabilities of the answer's tokens"},
    {"max_completion_tokens", kInteger, kHonoured, 1, 1 << 27, "the newer name of max_tokens"},
    {"max_reasoning_tokens", kInteger, kHonoured, 0, 1 << 27,
     "after so many tokens of reasoning the answer must begin"},
    {"messages", kArray, kHonoured, 1, 4096, "the conversation"},
    {"metadata", kObject, kNoEffect, 0, 0, "nothing is stored"},
    {"modalities", kAny, kRefused, 0, 0, "only text", "[\"text\"]"},
    {"moderation", kAny, kRefused, 0, 0, "nothing is moderated"},
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
    {"tool_choice", kAny, kHonoured, 0, 0,
     "auto, none, required, or one function by name; enforced token by token"},
    {"tools", kArray, kHonoured, 0, 128, "functions the model may call"},
    {"top_logprobs", kInteger, kHonoured, 0, 20, "so many of the likeliest tokens beside each"},
    {"verbosity", kString, kRefused, 0, 0, "the models have no such setting", "\"medium\""},
    {"web_search_options", kAny, kRefused, 0, 0, "this server opens no connections"},
};

std::optional<ApiError> ReadToolChoice(const Fields& fields, TurnRequest& out) {
  out.parallel_calls = fields.flag("parallel_tool_calls", true);
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr) return std::nullopt;
  if (const std::string* word = choice->string()) {
    if (*word == "auto") return std::nullopt;
    if (*word == "none") {
      out.tool_choice = ToolChoice::kNone;
      return std::nullopt;
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
                      R"(must be a word or {"type": "function", "function": {"name": ...}})",
                      "unsupported_value");
    }
    out.tool_choice = ToolChoice::kNamed;
    out.named_tool = *name->string();
  }
  return CheckToolChoice(out);
}

std::optional<ApiError> ReadReasoning(const Fields& fields, TurnRequest& out) {
  if (const auto bound = fields.integer("max_reasoning_tokens")) {
    out.reasoning_tokens = static_cast<int>(*bound);
  }
  for (const char* name : {"chat_template_kwargs", "reasoning"}) {
    const Json* object = fields.find(name);
    if (object == nullptr) continue;
    for (const auto& [member, value] : *object->object()) {
      const std::string path = std::string(name) + "." + member;
      const bool is_effort =
          member == (name == std::string_view("reasoning") ? "effort" : "reasoning_effort");
      if (value.is_null()) continue;
      if (!is_effort || value.string() == nullptr) {
        return BadField(path.substr(0, 120), "not supported", "unsupported_parameter");
      }
      if (auto error = ReadEffort(*value.string(), path, out)) return error;
    }
  }
  if (const auto effort = fields.text("reasoning_effort")) {
    return ReadEffort(*effort, "reasoning_effort", out);
  }
  return std::nullopt;
}

std::optional<ApiError> ReadLogprobs(const Fields& fields, SamplingParams& out) {
  const bool wanted = fields.flag("logprobs", false);
  const auto top = fields.integer("top_logprobs");
  if (top && *top > 0 && !wanted) return BadField("top_logprobs", "needs logprobs: true");
  if (wanted) out.num_logprobs = static_cast<int>(top.value_or(0));
  return std::nullopt;
}

const std::vector<Field>& Table() {
  static const std::vector<Field> table = JoinFields(kOwnFields, SharedFields());
  return table;
}

}  // namespace

std::span<const Field> ChatFields() { return Table(); }

ApiResult<TurnRequest> ReadChatRequest(Json body) {
  ApiResult<Fields> read = ReadFields(body, Table());
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  const Fields& fields = std::get<Fields>(read);
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
  if (auto error = ReadShared(fields, out)) return *std::move(error);
  if (fields.integer("max_tokens").value_or(1) == 0) {
    return BadField("max_tokens", "must be at least 1 in a chat");
  }
  if (auto error = ReadToolChoice(fields, out)) return *std::move(error);
  if (auto error = ReadReasoning(fields, out)) return *std::move(error);
  if (auto error = ReadLogprobs(fields, out.sampling)) return *std::move(error);
  if (const Json* format = fields.find("response_format")) {
    if (auto error = ReadResponseFormat(*format, "response_format", out.answer)) {
      return *std::move(error);
    }
  }
  if (const auto max_tokens = fields.integer("max_completion_tokens")) {
    out.max_tokens = static_cast<int>(*max_tokens);
  }
  return out;
}

}  // namespace hearth
