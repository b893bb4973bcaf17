// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/responses/responses_request.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/dialects/peer_fields.h"
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
    {"chat_template_kwargs", kObject, kHonoured, 0, 0,
     "variables of the model's chat template, as in chat completions"},
    {"client_metadata", kAny, kNoEffect, 0, 0, "nothing is done with it"},
    {"context_management", kAny, kRefused, 0, 0, "prompts are never shortened", "[]"},
    {"conversation", kAny, kRefused, 0, 0, "use previous_response_id"},
    {"include", kArray, kHonoured, 0, 16,
     "`reasoning.encrypted_content`: the thoughts once more, encrypted, for clients that send them "
     "back; `message.output_text.logprobs`"},
    {"input", kAny, kHonoured, 0, 0, "a string, or items: messages, calls, results, reasoning"},
    {"instructions", kString, kHonoured, 0, 1 << 22,
     "stands before everything else; not carried over from the previous response"},
    {"max_output_tokens", kInteger, kHonoured, 1, 1 << 27, "reasoning included"},
    {"max_tool_calls", kInteger, kRefused, 0, 0, "tools are run by the client"},
    {"metadata", kObject, kHonoured, 0, 0,
     "stored and repeated with the response: up to 16 strings of 512 characters, named with up to "
     "64"},
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"moderation", kAny, kRefused, 0, 0, "there is no moderation"},
    {"parallel_tool_calls", kBoolean, kHonoured, 0, 0, "whether one reply may hold several calls"},
    {"previous_response_id", kString, kHonoured, 0, 128, "goes on from a stored response"},
    {"prompt", kAny, kRefused, 0, 0, "this server does not store prompts"},
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
    {"temperature", kNumber, kHonoured, 0, 2,
     "0 is the most likely token; unless given, what is recommended for the model, else 1"},
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
    {"truncation", kString, kRefused, 0, 0, "prompts are never shortened", "\"disabled\""},
    {"user", kString, kNoEffect, 0, 0, "nothing is done with it"},
};

ApiError Unknown(const std::string& path) {
  ApiError error = UnknownField(path);
  error.param = Quoted(path);
  return error;
}

size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

ApiError BadMetadata(const std::string& message) {
  ApiError error = FromStatus(Status(Code::kInvalid, "metadata: " + message));
  error.param = "metadata";
  return error;
}

// As OpenAI documents it: without bounds it would be a store for anything.
ApiStatus CheckMetadata(const Json* metadata) {
  constexpr size_t kMaxPairs = 16, kMaxName = 64, kMaxValue = 512;
  if (metadata == nullptr) return {};
  const JsonObject& pairs = *metadata->object();
  if (pairs.size() > kMaxPairs) {
    return BadMetadata(Printf("expected at most %zu pairs, found %zu", kMaxPairs, pairs.size()));
  }
  for (const auto& [name, value] : pairs) {
    if (Characters(name) > kMaxName) {
      return BadMetadata(
          Printf("a name may have %zu characters, found %zu", kMaxName, Characters(name)));
    }
    const std::string* text = value.string();
    if (text == nullptr) return BadMetadata(Quoted(name) + " must be a string");
    if (Characters(*text) > kMaxValue) {
      return BadMetadata(Printf("%s may have %zu characters, found %zu", Quoted(name).c_str(),
                                kMaxValue, Characters(*text)));
    }
  }
  return {};
}

ApiStatus ReadToolChoice(const Json& choice, TurnRequest& out) {
  const std::string* word = choice.string();
  if (word != nullptr && *word == "auto") return {};
  if (word != nullptr && *word == "none") {
    out.tool_choice = ToolChoice::kNone;
    return {};
  }
  const std::string *type = StringIn(choice, "type"), *name = StringIn(choice, "name");
  const std::string* space = StringIn(choice, "namespace");
  if (word != nullptr && *word == "required") {
    out.tool_choice = ToolChoice::kRequired;
  } else if (type != nullptr && (*type == "function" || *type == "custom") && name != nullptr) {
    out.tool_choice = ToolChoice::kNamed;
    out.named_tool = ToolAliases::ModelName(space == nullptr ? "" : *space, *name);
  } else {
    return BadField("tool_choice",
                    R"(must be auto, none, required or {"type": "function", "name": ...})");
  }
  return CheckToolChoice(out);
}

ApiStatus ReadText(const Json& text, TurnRequest& out) {
  for (const auto& [name, value] : *text.object()) {
    if (value.is_null()) continue;
    if (name == "format") {
      HEARTH_TRY(ReadResponseFormat(value, "text.format", out.answer));
    } else if (name == "verbosity") {
      // The models have no such setting; agents send one all the same.
      if (value.string() == nullptr) return BadField("text.verbosity", "must be a string");
    } else {
      return Unknown("text." + name);
    }
  }
  return {};
}

ApiStatus ReadReasoning(const Json& reasoning, TurnRequest& out) {
  for (const auto& [name, value] : *reasoning.object()) {
    const bool has_no_effect = name == "summary" || name == "generate_summary" || name == "context";
    if (value.is_null() || has_no_effect) continue;
    if (name != "effort") return Unknown("reasoning." + name);
    if (value.string() == nullptr) return BadField("reasoning.effort", "must be a string");
    HEARTH_TRY(ReadEffort(*value.string(), "reasoning.effort", out));
  }
  return {};
}

ApiStatus ReadInclude(const Fields& fields, ResponsesRequest& out) {
  bool wants_logprobs = false;
  if (const Json* include = fields.find("include")) {
    for (const Json& each : *include->array()) {
      if (each == Json("reasoning.encrypted_content")) {
        out.wants_encrypted_reasoning = true;
      } else if (each == Json("message.output_text.logprobs")) {
        wants_logprobs = true;
      } else {
        return BadField(
            "include",
            "only reasoning.encrypted_content and message.output_text.logprobs are supported",
            "unsupported_value");
      }
    }
  }
  const int top = static_cast<int>(fields.integer("top_logprobs").value_or(0));
  if (top > 0 && !wants_logprobs) {
    return BadField("top_logprobs", "needs \"message.output_text.logprobs\" in include");
  }
  if (wants_logprobs) out.turn.sampling.num_logprobs = top;
  return {};
}

ApiStatus ReadSettings(const Fields& fields, ResponsesRequest& out) {
  TurnRequest& turn = out.turn;
  turn.prompt_field = "input";
  turn.model = fields.text("model").value_or("");
  turn.max_tokens = static_cast<int>(fields.integer("max_output_tokens").value_or(0));
  turn.streams = fields.flag("stream", false);
  turn.parallel_calls = fields.flag("parallel_tool_calls", true);
  turn.cache_salt = fields.text("cache_salt").value_or("");
  fields.Set("temperature", turn.sampling.temperature);
  fields.Set("top_p", turn.sampling.top_p);
  fields.Set("top_k", turn.sampling.top_k);
  if (const auto seed = fields.integer("seed")) {
    turn.sampling.seed = static_cast<uint64_t>(*seed);
    turn.has_seed = true;
  }
  out.stores = fields.flag("store", true);
  out.is_background = fields.flag("background", false);
  if (out.is_background && !out.stores) {
    return BadField(
        "background",
        "needs store: true, because the result of a background response is fetched from the store");
  }
  if (const Json* choice = fields.find("tool_choice")) {
    HEARTH_TRY(ReadToolChoice(*choice, turn));
  }
  if (const Json* text = fields.find("text")) {
    HEARTH_TRY(ReadText(*text, turn));
  }
  if (const Json* variables = fields.find("chat_template_kwargs")) {
    HEARTH_TRY(ReadTemplateVariables(*variables, "chat_template_kwargs", turn));
  }
  if (const Json* reasoning = fields.find("reasoning")) {
    HEARTH_TRY(ReadReasoning(*reasoning, turn));
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
          {"temperature", given("temperature", Json())},
          {"text", std::move(text)},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", std::move(tools)},
          {"top_p", given("top_p", Json())},
          {"top_logprobs", given("top_logprobs", 0)},
          {"truncation", "disabled"},
          {"access_programs", Json()},
          {"background", request.is_background}};
}

}  // namespace

std::span<const Field> ResponsesFields() { return kFields; }

ApiResult<ResponsesRequest> ReadResponsesRequest(const Json& body, const ItemsBefore& before,
                                                 const Decrypt& decrypt) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, kFields));
  HEARTH_TRY(CheckMetadata(fields.find("metadata")));
  ResponsesRequest out;
  MessageList list;
  if (const auto instructions = fields.text("instructions")) {
    if (!instructions->empty()) list.AddText("system", *instructions, "instructions");
  }
  out.previous_id = fields.text("previous_response_id").value_or("");
  if (!out.previous_id.empty()) {
    HEARTH_ASSIGN(JsonArray items, before(out.previous_id));
    HEARTH_TRY(AddItems(items, "previous_response_id", {list, out.aliases, decrypt}));
  }
  const Json* input = fields.find("input");
  if (input == nullptr) return BadField("input", "is missing");
  HEARTH_ASSIGN(out.input, InputItems(*input));
  HEARTH_TRY(AddItems(out.input, "input", {list, out.aliases, decrypt}));
  if (const Json* tools = fields.find("tools")) {
    HEARTH_TRY(ReadTools(*tools, "tools", list, out.aliases, out.told_tools));
  }
  HEARTH_ASSIGN(out.turn.conversation, std::move(list).Parse());
  HEARTH_TRY(ReadSettings(fields, out));
  out.echo = EchoOf(fields, out);
  return out;
}

}  // namespace hearth
