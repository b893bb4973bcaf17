// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_request.h"

#include <utility>

#include "server/dialects/responses/responses_items.h"
#include "server/dialects/responses/responses_tools.h"
#include "server/dialects/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kFields[] = {
    {"background", kBoolean, kHonoured, 0, 0,
     "goes on when the client goes; ask for it with GET. Needs `store`"},
    {"cache_salt", kString, kHonoured, 1, 256,
     "requests share cached prefixes only within one salt; your key's own is always part of it"},
    {"client_metadata", kAny, kNoEffect, 0, 0, "nothing is done with it"},
    {"context_management", kAny, kRefused, 0, 0, "nothing is ever left out of a prompt", "[]"},
    {"conversation", kAny, kRefused, 0, 0, "use previous_response_id"},
    {"include", kArray, kHonoured, 0, 16,
     "`reasoning.encrypted_content`: the thoughts once more, sealed, for clients that send them "
     "back; `message.output_text.logprobs`"},
    {"input", kAny, kHonoured, 0, 0, "a string, or items: messages, calls, results, reasoning"},
    {"instructions", kString, kHonoured, 0, 1 << 22,
     "stands before everything else; not carried over from the previous response"},
    {"max_output_tokens", kInteger, kHonoured, 1, 1 << 27, "reasoning included"},
    {"max_tool_calls", kInteger, kRefused, 0, 0, "this server runs no tools"},
    {"metadata", kObject, kHonoured, 0, 0, "stored and repeated with the response"},
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"moderation", kAny, kRefused, 0, 0, "nothing is moderated"},
    {"parallel_tool_calls", kBoolean, kHonoured, 0, 0, "whether one reply may hold several calls"},
    {"previous_response_id", kString, kHonoured, 0, 128, "goes on from a stored response"},
    {"prompt", kAny, kRefused, 0, 0, "no prompts are kept here"},
    {"prompt_cache_key", kString, kNoEffect, 0, 0, "the cache is found by content"},
    {"prompt_cache_options", kAny, kNoEffect, 0, 0, "every prefix is cached"},
    {"prompt_cache_retention", kAny, kNoEffect, 0, 0, "the cache keeps what is used"},
    {"reasoning", kObject, kHonoured, 0, 0,
     "`effort`; `summary` and `context` have no effect, the thoughts themselves are told"},
    {"safety_identifier", kString, kNoEffect, 0, 0, "nothing is done with it"},
    {"seed", kInteger, kHonoured, 0, 0, "the same seed and request give the same reply, always"},
    {"service_tier", kString, kNoEffect, 0, 0, "there is one tier"},
    {"store", kBoolean, kHonoured, 0, 0,
     "keep it for previous_response_id and GET; true unless given"},
    {"stream", kBoolean, kHonoured, 0, 0, "server-sent events"},
    {"stream_options", kObject, kNoEffect, 0, 0, "events are not padded"},
    {"temperature", kNumber, kHonoured, 0, 2, "0 is the most likely token; 1 unless given"},
    {"text", kObject, kHonoured, 0, 0,
     "`format`: text, json_object or json_schema, enforced token by token; `verbosity` has no "
     "effect"},
    {"tool_choice", kAny, kHonoured, 0, 0,
     "auto, none, required, or one function by name; enforced token by token"},
    {"tools", kArray, kHonoured, 0, 128,
     "functions, custom tools (text; a grammar is not enforced) and namespaces of both; web "
     "searches "
     "and image generation are left out, which the response's own `tools` shows"},
    {"top_k", kInteger, kHonoured, 0, 1 << 20, "keep so many of the likeliest tokens; 0: all"},
    {"top_logprobs", kInteger, kHonoured, 0, 20,
     "so many of the likeliest tokens beside each, where `include` asks for logprobs"},
    {"top_p", kNumber, kHonoured, 0, 1, "keep the likeliest tokens up to this share"},
    {"truncation", kString, kRefused, 0, 0, "nothing is ever left out of a prompt", "\"disabled\""},
    {"user", kString, kNoEffect, 0, 0, "nothing is done with it"},
};

ApiError Unknown(const std::string& path) { return UnknownField(path.substr(0, 120)); }

std::optional<ApiError> ReadToolChoice(const Json& choice, TurnRequest& out) {
  const std::string* word = choice.string();
  if (word != nullptr && *word == "auto") return std::nullopt;
  if (word != nullptr && *word == "none") {
    out.tool_choice = ToolChoice::kNone;
    return std::nullopt;
  }
  const std::string *type = StringIn(choice, "type"), *name = StringIn(choice, "name");
  const std::string* space = StringIn(choice, "namespace");
  if (word != nullptr && *word == "required") {
    out.tool_choice = ToolChoice::kRequired;
  } else if (type != nullptr && (*type == "function" || *type == "custom") && name != nullptr) {
    out.tool_choice = ToolChoice::kNamed;
    out.named_tool = ToolFaces::ModelName(space == nullptr ? "" : *space, *name);
  } else {
    return BadField("tool_choice",
                    R"(must be auto, none, required or {"type": "function", "name": ...})");
  }
  return CheckToolChoice(out);
}

std::optional<ApiError> ReadText(const Json& text, TurnRequest& out) {
  for (const auto& [name, value] : *text.object()) {
    if (value.is_null()) continue;
    if (name == "format") {
      if (auto error = ReadResponseFormat(value, "text.format", out.answer)) return error;
    } else if (name == "verbosity") {
      // The models have no such setting; agents send one all the same.
      if (value.string() == nullptr) return BadField("text.verbosity", "must be a string");
    } else {
      return Unknown("text." + name);
    }
  }
  return std::nullopt;
}

std::optional<ApiError> ReadReasoning(const Json& reasoning, TurnRequest& out) {
  for (const auto& [name, value] : *reasoning.object()) {
    const bool has_no_effect = name == "summary" || name == "generate_summary" || name == "context";
    if (value.is_null() || has_no_effect) continue;
    if (name != "effort") return Unknown("reasoning." + name);
    if (value.string() == nullptr) return BadField("reasoning.effort", "must be a string");
    if (auto error = ReadEffort(*value.string(), "reasoning.effort", out)) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> ReadInclude(const Fields& fields, ResponsesRequest& out) {
  bool wants_logprobs = false;
  if (const Json* include = fields.find("include")) {
    for (const Json& each : *include->array()) {
      if (each == Json("reasoning.encrypted_content")) {
        out.wants_encrypted_reasoning = true;
      } else if (each == Json("message.output_text.logprobs")) {
        wants_logprobs = true;
      } else {
        return BadField("include",
                        "only reasoning.encrypted_content and message.output_text.logprobs",
                        "unsupported_value");
      }
    }
  }
  const int top = static_cast<int>(fields.integer("top_logprobs").value_or(0));
  if (top > 0 && !wants_logprobs) {
    return BadField("top_logprobs", "needs message.output_text.logprobs in include");
  }
  if (wants_logprobs) out.turn.sampling.num_logprobs = top;
  return std::nullopt;
}

std::optional<ApiError> ReadSettings(const Fields& fields, ResponsesRequest& out) {
  TurnRequest& turn = out.turn;
  turn.prompt_field = "input";
  turn.model = fields.text("model").value_or("");
  turn.max_tokens = static_cast<int>(fields.integer("max_output_tokens").value_or(0));
  turn.streams = fields.flag("stream", false);
  turn.parallel_calls = fields.flag("parallel_tool_calls", true);
  turn.cache_salt = fields.text("cache_salt").value_or("");
  turn.sampling.temperature = static_cast<float>(fields.number("temperature").value_or(1));
  turn.sampling.top_p = static_cast<float>(fields.number("top_p").value_or(1));
  turn.sampling.top_k = static_cast<int>(fields.integer("top_k").value_or(0));
  if (const auto seed = fields.integer("seed")) {
    turn.sampling.seed = static_cast<uint64_t>(*seed);
    turn.has_seed = true;
  }
  out.stores = fields.flag("store", true);
  out.is_background = fields.flag("background", false);
  if (out.is_background && !out.stores) {
    return BadField("background", "needs store: there would be nothing to ask for");
  }
  if (const Json* choice = fields.find("tool_choice")) {
    if (auto error = ReadToolChoice(*choice, turn)) return error;
  }
  if (const Json* text = fields.find("text")) {
    if (auto error = ReadText(*text, turn)) return error;
  }
  if (const Json* reasoning = fields.find("reasoning")) {
    if (auto error = ReadReasoning(*reasoning, turn)) return error;
  }
  return ReadInclude(fields, out);
}

JsonObject EchoOf(const Fields& fields, const ResponsesRequest& request) {
  const auto given = [&](const char* name, Json otherwise) {
    const Json* value = fields.find(name);
    return value == nullptr ? std::move(otherwise) : *value;
  };
  JsonArray tools = request.told_tools;
  for (Json& tool : tools) {
    if (*tool.Find("type") != Json("function")) continue;
    for (const char* member : {"parameters", "strict"}) {
      if (tool.Find(member) == nullptr) tool.object()->push_back({member, Json()});
    }
  }
  Json text = given("text", JsonObject{});
  if (text.Find("format") == nullptr) {
    text.object()->push_back({"format", JsonObject{{"type", "text"}}});
  }
  const auto& previous = request.previous_id;
  return {{"instructions", given("instructions", Json())},
          {"max_output_tokens", given("max_output_tokens", Json())},
          {"metadata", given("metadata", JsonObject{})},
          {"parallel_tool_calls", request.turn.parallel_calls},
          {"previous_response_id", previous.empty() ? Json() : Json(previous)},
          {"reasoning", given("reasoning", JsonObject{{"effort", Json()}, {"summary", Json()}})},
          {"temperature", given("temperature", 1.0)},
          {"text", std::move(text)},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", std::move(tools)},
          {"top_p", given("top_p", 1.0)},
          {"top_logprobs", given("top_logprobs", 0)},
          {"truncation", "disabled"},
          {"access_programs", Json()},
          {"background", request.is_background}};
}

}  // namespace

std::span<const Field> ResponsesFields() { return kFields; }

ApiResult<ResponsesRequest> ReadResponsesRequest(const Json& body, const ItemsBefore& before,
                                                 const Unseal& unseal) {
  ApiResult<Fields> read = ReadFields(body, kFields);
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  const Fields& fields = std::get<Fields>(read);
  ResponsesRequest out;
  MessageList list;
  if (const auto instructions = fields.text("instructions")) {
    if (!instructions->empty()) list.AddText("system", *instructions, "instructions");
  }
  out.previous_id = fields.text("previous_response_id").value_or("");
  if (!out.previous_id.empty()) {
    ApiResult<JsonArray> earlier = before(out.previous_id);
    if (auto* error = std::get_if<ApiError>(&earlier)) return std::move(*error);
    auto& items = std::get<JsonArray>(earlier);
    if (auto error = AddItems(items, "previous_response_id", {list, out.faces, unseal}))
      return *std::move(error);
  }
  const Json* input = fields.find("input");
  if (input == nullptr) return BadField("input", "is missing");
  ApiResult<JsonArray> items = InputItems(*input);
  if (auto* error = std::get_if<ApiError>(&items)) return std::move(*error);
  out.input = std::get<JsonArray>(std::move(items));
  if (auto error = AddItems(out.input, "input", {list, out.faces, unseal}))
    return *std::move(error);
  if (const Json* tools = fields.find("tools")) {
    auto error = ReadTools(*tools, "tools", list, out.faces, out.told_tools);
    if (error) return *std::move(error);
  }
  ApiResult<Conversation> conversation = std::move(list).Parse();
  if (auto* error = std::get_if<ApiError>(&conversation)) return std::move(*error);
  out.turn.conversation = std::get<Conversation>(std::move(conversation));
  if (auto error = ReadSettings(fields, out)) return *std::move(error);
  out.echo = EchoOf(fields, out);
  return out;
}

}  // namespace hearth
