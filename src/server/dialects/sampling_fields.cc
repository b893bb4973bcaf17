// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/sampling_fields.h"

#include <algorithm>
#include <utility>

#include "server/dialects/peer_fields.h"
#include "text/stop_strings.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kSharedFields[] = {
    {"cache_salt", kString, kHonoured, 1, 256,
     "requests share cached prefixes only within one salt; your key's own is always part of it"},
    {"frequency_penalty", kNumber, kHonoured, -2, 2,
     "taken off a token's logit for each time it occurred"},
    {"guided_choice", kArray, kHonoured, 1, 4096, "the answer is one of these strings"},
    {"guided_grammar", kString, kHonoured, 1, 32768, "the answer is of this Lark grammar"},
    {"guided_json", kAny, kHonoured, 0, 0, "the answer is JSON of this schema, object or string"},
    {"guided_regex", kString, kHonoured, 1, 8192, "the answer matches this, whole"},
    {"ignore_eos", kBoolean, kHonoured, 0, 0, "the model's own end does not end the reply"},
    {"logit_bias", kObject, kHonoured, 0, 0, "token id -> what is added to its logit, -100 to 100"},
    {"max_tokens", kInteger, kHonoured, 0, 1 << 27,
     "tokens of the reply, reasoning included; as many as fit unless given; 0, which reads the "
     "prompt and says nothing, in completions alone"},
    {"min_p", kNumber, kHonoured, 0, 1, "keep tokens with this share of the likeliest one's"},
    {"min_tokens", kInteger, kHonoured, 0, 1 << 20, "no end before so many tokens"},
    {"model", kString, kHonoured, 0, 256, "the name of the model that is served"},
    {"n", kInteger, kHonoured, 1, 16, "choices"},
    {"presence_penalty", kNumber, kHonoured, -2, 2, "taken off a token's logit once it occurred"},
    {"priority", kInteger, kHonoured, -1, 2,
     "-1 urgent, 0 normal, 1 low, 2 when nobody else wants anything; at most what the key may "
     "have"},
    {"prompt_logprobs", kInteger, kHonoured, 0, 20,
     "log-probabilities of the prompt's tokens, and so many of the likeliest; not in a stream"},
    {"repetition_penalty", kNumber, kHonoured, 0.01, 10,
     "divides the logits of tokens that occurred"},
    {"return_progress", kBoolean, kHonoured, 0, 0,
     "while a stream's prompt is read, chunks without choices tell how much of it is, under "
     "`prompt_progress`: `total`, `cache`, `processed`"},
    {"seed", kInteger, kHonoured, 0, 0, "the same seed and request give the same reply, always"},
    {"stop", kAny, kHonoured, 0, 0, "a string or up to 16 of them; never part of the reply"},
    {"stop_token_ids", kArray, kHonoured, 0, 64, "tokens that end the reply"},
    {"stream", kBoolean, kHonoured, 0, 0, "server-sent events"},
    {"stream_options", kObject, kHonoured, 0, 0, "`include_usage`"},
    {"structured_outputs", kObject, kHonoured, 0, 0,
     "one of `json`, `regex`, `choice`, `grammar`, `json_object`"},
    {"temperature", kNumber, kHonoured, 0, 2,
     "0 is the most likely token; unless given, what is recommended for the model, else 1"},
    {"timeout", kNumber, kHonoured, 0.001, 86400, "seconds, after which the request ends with 504"},
    {"top_k", kInteger, kHonoured, -1, 1 << 20, "keep so many of the likeliest tokens; 0, -1: all"},
    {"top_p", kNumber, kHonoured, 0, 1, "keep the likeliest tokens up to this share"},
    {"user", kString, kNoEffect, 0, 0, "nothing is stored"},
};

ApiStatus ReadStops(const Fields& fields, std::vector<std::string>& out) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return {};
  if (stop->string() != nullptr) {
    out.push_back(*stop->string());
  } else if (stop->array() != nullptr) {
    for (const Json& each : *stop->array()) {
      if (each.string() == nullptr) return BadField("stop", "must contain only strings");
      out.push_back(*each.string());
    }
  } else {
    return BadField("stop", "must be a string or an array of strings");
  }
  if (const Status status = StopStrings::Make(out).status(); !status.ok()) {
    return BadField("stop", status.message());
  }
  return {};
}

std::optional<Token> TokenId(std::string_view digits) {
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  Token token = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    token = token * 10 + (c - '0');
  }
  return token;
}

ApiStatus ReadTokens(const Fields& fields, SamplingParams& out) {
  if (const Json* bias = fields.find("logit_bias")) {
    if (bias->object()->size() > 1024)
      return BadField("logit_bias", "must have at most 1024 entries");
    for (const auto& [name, value] : *bias->object()) {
      const std::optional<Token> token = TokenId(name);
      const std::optional<double> number = value.number();
      if (!token || !number || !(*number >= -100 && *number <= 100)) {
        return BadField("logit_bias", "must map token ids to numbers from -100 to 100");
      }
      out.logit_bias.push_back({*token, static_cast<float>(*number)});
    }
  }
  if (const Json* ids = fields.find("stop_token_ids")) {
    for (const Json& id : *ids->array()) {
      const std::optional<int64_t> number = id.integer();
      if (!number || *number < 0 || *number > 1 << 29) {
        return BadField("stop_token_ids", "must contain token ids");
      }
      out.stop_tokens.push_back(static_cast<Token>(*number));
    }
  }
  return {};
}

void ReadSampling(const Fields& fields, TurnRequest& out) {
  SamplingParams& sampling = out.sampling;
  fields.Set("temperature", sampling.temperature);
  fields.Set("top_p", sampling.top_p);
  fields.Set("min_p", sampling.min_p);
  fields.Set("frequency_penalty", sampling.frequency_penalty);
  fields.Set("presence_penalty", sampling.presence_penalty);
  fields.Set("repetition_penalty", sampling.repetition_penalty);
  if (const auto top_k = fields.integer("top_k")) {
    sampling.top_k = std::max(0, static_cast<int>(*top_k));
  }
  sampling.min_tokens = static_cast<int>(fields.integer("min_tokens").value_or(0));
  sampling.ignores_eos = fields.flag("ignore_eos", false);
  if (const auto seed = fields.integer("seed")) {
    sampling.seed = static_cast<uint64_t>(*seed);
    out.has_seed = true;
  }
}

ApiStatus SetSchema(const Json& schema, const std::string& path, AnswerShape& out) {
  out = {AnswerShape::Kind::kSchema, path, schema, "", {}};
  if (schema.string() != nullptr) {
    Result<Json> parsed = ParseJson(*schema.string());
    if (!parsed.ok()) return BadField(path, parsed.status().message());
    out.schema = *std::move(parsed);
  }
  if (out.schema.object() == nullptr && out.schema.boolean() == nullptr) {
    return BadField(path, "must be a JSON schema, which is an object");
  }
  return {};
}

// Several fields may give the answer a shape, but one request only one of them.
ApiStatus CheckUnshaped(const std::string& path, const AnswerShape& shape) {
  if (shape.kind == AnswerShape::Kind::kText) return {};
  return BadField(path, "conflicts with another output format, set by " + shape.field);
}

// One member of structured_outputs, or its older name guided_*.
ApiStatus ReadGuide(const std::string& kind, const Json& value, const std::string& path,
                    AnswerShape& out) {
  HEARTH_TRY(CheckUnshaped(path, out));
  if (kind == "json") return SetSchema(value, path, out);
  out.field = path;
  if (kind == "json_object") {
    if (value.boolean() == nullptr) return BadField(path, "must be a boolean");
    out.kind = *value.boolean() ? AnswerShape::Kind::kObject : AnswerShape::Kind::kText;
    return {};
  }
  if (kind == "choice") {
    out.kind = AnswerShape::Kind::kChoice;
    for (const Json& each : value.array() != nullptr ? *value.array() : JsonArray()) {
      if (each.string() == nullptr) return BadField(path, "must contain only strings");
      out.choices.push_back(*each.string());
    }
    if (out.choices.empty()) return BadField(path, "must be an array of at least one string");
    return {};
  }
  if (kind != "regex" && kind != "grammar") {
    return BadField(path, "not supported", "unsupported_parameter");
  }
  if (value.string() == nullptr) return BadField(path, "must be a string");
  out.kind = kind == "regex" ? AnswerShape::Kind::kRegex : AnswerShape::Kind::kLark;
  out.text = *value.string();
  return {};
}

ApiStatus ReadGuides(const Fields& fields, AnswerShape& out) {
  for (const char* kind : {"choice", "grammar", "json", "regex"}) {
    const std::string name = std::string("guided_") + kind;
    const Json* value = fields.find(name);
    if (value == nullptr) continue;
    HEARTH_TRY(ReadGuide(kind, *value, name, out));
  }
  if (const Json* schema = fields.find("json_schema")) {
    HEARTH_TRY(ReadGuide("json", *schema, "json_schema", out));
  }
  const Json* all = fields.find("structured_outputs");
  if (all == nullptr) return {};
  for (const auto& [kind, value] : *all->object()) {
    if (value.is_null()) continue;
    HEARTH_TRY(ReadGuide(kind, value, "structured_outputs." + kind, out));
  }
  return {};
}

ApiStatus ReadStreamOptions(const Fields& fields, TurnRequest& out) {
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return {};
  for (const auto& [name, value] : *options->object()) {
    const std::string path = "stream_options." + name;
    const bool is_flag = value.boolean() != nullptr || value.is_null();
    if (!is_flag) return BadField(path, "must be a boolean");
    if (name == "include_usage") {
      out.wants_usage = value.boolean() != nullptr && *value.boolean();
    } else if (name != "include_obfuscation" && name != "continuous_usage_stats") {
      return UnknownField(path.substr(0, 120));
    }
  }
  return {};
}

}  // namespace

std::span<const Field> SharedFields() {
  static const std::vector<Field> table = JoinFields(kSharedFields, PeerFields());
  return table;
}

std::vector<Field> JoinFields(std::span<const Field> own, std::span<const Field> shared) {
  std::vector<Field> all(own.begin(), own.end());
  all.insert(all.end(), shared.begin(), shared.end());
  std::sort(all.begin(), all.end(), [](const Field& a, const Field& b) { return a.name < b.name; });
  return all;
}

ApiStatus ReadResponseFormat(const Json& format, const std::string& path, AnswerShape& out) {
  HEARTH_TRY(CheckUnshaped(path, out));
  const Json* type = format.Find("type");
  const std::string* name = type == nullptr ? nullptr : type->string();
  if (name == nullptr) return BadField(path + ".type", "must be a string");
  if (*name == "text") return {};
  if (*name == "json_object") {
    out.kind = AnswerShape::Kind::kObject;
    out.field = path;
    return {};
  }
  if (*name != "json_schema") {
    return BadField(path + ".type", "must be text, json_object or json_schema");
  }
  const Json* inner = format.Find("json_schema");
  const std::string inner_path = inner == nullptr ? path : path + ".json_schema";
  const Json& about = inner == nullptr ? format : *inner;
  const Json* schema = about.Find("schema");
  if (schema == nullptr) return BadField(inner_path + ".schema", "is missing");
  HEARTH_TRY(SetSchema(*schema, inner_path + ".schema", out));
  const auto word = [&about](const char* member, const char* otherwise) {
    const Json* value = about.Find(member);
    return value == nullptr || value->string() == nullptr ? otherwise : *value->string();
  };
  out.name = word("name", "response");
  out.description = word("description", "");
  return {};
}

ApiStatus CheckToolChoice(const TurnRequest& turn) {
  const auto callable = CallableTools(
      turn.conversation.tools, {.tool_choice = turn.tool_choice, .named_tool = turn.named_tool});
  // Its message names the field.
  if (!callable.ok()) {
    ApiError error = FromStatus(callable.status());
    error.param = "tool_choice";
    return error;
  }
  return {};
}

ApiStatus ReadEffort(const std::string& word, const std::string& path, TurnRequest& out) {
  auto& effort = out.conversation.reasoning_effort;
  if (word == "none") {
    effort = ReasoningEffort::kLow;
    out.reasoning_tokens = 0;
  } else if (word == "minimal" || word == "low") {
    effort = ReasoningEffort::kLow;
  } else if (word == "medium") {
    effort = ReasoningEffort::kMedium;
  } else if (word == "high" || word == "xhigh" || word == "max") {
    effort = ReasoningEffort::kHigh;
  } else {
    return BadField(path, "must be none, minimal, low, medium, high, xhigh or max");
  }
  return {};
}

Priority PriorityOf(const Fields& fields) {
  const int64_t priority = fields.integer("priority").value_or(0);
  return static_cast<Priority>(priority + static_cast<int64_t>(Priority::kNormal));
}

ApiStatus ReadShared(const Fields& fields, TurnRequest& out) {
  ReadSampling(fields, out);
  HEARTH_TRY(ReadStops(fields, out.stops));
  HEARTH_TRY(ReadTokens(fields, out.sampling));
  HEARTH_TRY(ReadGuides(fields, out.answer));
  HEARTH_TRY(ReadStreamOptions(fields, out));
  out.model = fields.text("model").value_or("");
  out.max_tokens = static_cast<int>(fields.integer("max_tokens").value_or(0));
  HEARTH_TRY(ReadPeerFields(fields, out));
  out.num_choices = static_cast<int>(fields.integer("n").value_or(1));
  out.streams = fields.flag("stream", false);
  out.wants_progress = fields.flag("return_progress", false);
  out.cache_salt = fields.text("cache_salt").value_or("");
  out.timeout_us = static_cast<int64_t>(fields.number("timeout").value_or(0) * 1e6);
  out.priority = PriorityOf(fields);
  if (const auto top = fields.integer("prompt_logprobs")) {
    if (out.streams) return BadField("prompt_logprobs", "not supported with stream: true");
    out.sampling.num_prompt_logprobs = static_cast<int>(*top);
  }
  return {};
}

}  // namespace hearth
