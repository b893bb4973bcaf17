// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/sampling_fields.h"

#include <algorithm>
#include <utility>

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
    {"temperature", kNumber, kHonoured, 0, 2, "0 is the most likely token; 1 unless given"},
    {"timeout", kNumber, kHonoured, 0.001, 86400, "seconds, after which the request ends with 504"},
    {"top_k", kInteger, kHonoured, -1, 1 << 20, "keep so many of the likeliest tokens; 0, -1: all"},
    {"top_p", kNumber, kHonoured, 0, 1, "keep the likeliest tokens up to this share"},
    {"user", kString, kNoEffect, 0, 0, "nothing is stored"},
};

std::optional<ApiError> ReadStops(const Fields& fields, std::vector<std::string>& out) {
  const Json* stop = fields.find("stop");
  if (stop == nullptr) return std::nullopt;
  if (stop->string() != nullptr) {
    out.push_back(*stop->string());
  } else if (stop->array() != nullptr) {
    for (const Json& each : *stop->array()) {
      if (each.string() == nullptr) return BadField("stop", "must hold strings");
      out.push_back(*each.string());
    }
  } else {
    return BadField("stop", "must be a string or an array of strings");
  }
  if (const Status status = StopStrings::Make(out).status(); !status.ok()) {
    return BadField("stop", status.message());
  }
  return std::nullopt;
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

std::optional<ApiError> ReadTokens(const Fields& fields, SamplingParams& out) {
  if (const Json* bias = fields.find("logit_bias")) {
    if (bias->object()->size() > 1024) return BadField("logit_bias", "at most 1024 tokens");
    for (const auto& [name, value] : *bias->object()) {
      const std::optional<Token> token = TokenId(name);
      const std::optional<double> number = value.number();
      if (!token || !number || !(*number >= -100 && *number <= 100)) {
        return BadField("logit_bias", "token ids with numbers from -100 to 100");
      }
      out.logit_bias.push_back({*token, static_cast<float>(*number)});
    }
  }
  if (const Json* ids = fields.find("stop_token_ids")) {
    for (const Json& id : *ids->array()) {
      const std::optional<int64_t> number = id.integer();
      if (!number || *number < 0 || *number > 1 << 29) {
        return BadField("stop_token_ids", "token ids");
      }
      out.stop_tokens.push_back(static_cast<Token>(*number));
    }
  }
  return std::nullopt;
}

void ReadSampling(const Fields& fields, TurnRequest& out) {
  const auto number = [&](const char* name, float& to) {
    if (const auto value = fields.number(name)) to = static_cast<float>(*value);
  };
  SamplingParams& sampling = out.sampling;
  number("temperature", sampling.temperature);
  number("top_p", sampling.top_p);
  number("min_p", sampling.min_p);
  number("frequency_penalty", sampling.frequency_penalty);
  number("presence_penalty", sampling.presence_penalty);
  number("repetition_penalty", sampling.repetition_penalty);
  sampling.top_k = std::max(0, static_cast<int>(fields.integer("top_k").value_or(0)));
  sampling.min_tokens = static_cast<int>(fields.integer("min_tokens").value_or(0));
  sampling.ignores_eos = fields.flag("ignore_eos", false);
  if (const auto seed = fields.integer("seed")) {
    sampling.seed = static_cast<uint64_t>(*seed);
    out.has_seed = true;
  }
}

std::optional<ApiError> SetSchema(const Json& schema, const std::string& path, AnswerShape& out) {
  out = {AnswerShape::Kind::kSchema, path, schema, "", {}};
  if (schema.string() != nullptr) {
    Result<Json> parsed = ParseJson(*schema.string());
    if (!parsed.ok()) return BadField(path, parsed.status().message());
    out.schema = *std::move(parsed);
  }
  if (out.schema.object() == nullptr && out.schema.boolean() == nullptr) {
    return BadField(path, "must be a JSON schema, which is an object");
  }
  return std::nullopt;
}

// Several fields may give the answer a shape, but one request only one of them.
std::optional<ApiError> CheckUnshaped(const std::string& path, const AnswerShape& shape) {
  if (shape.kind == AnswerShape::Kind::kText) return std::nullopt;
  return BadField(path, "the answer has a shape already, from " + shape.field);
}

// One member of structured_outputs, or its older name guided_*.
std::optional<ApiError> ReadGuide(const std::string& kind, const Json& value,
                                  const std::string& path, AnswerShape& out) {
  if (auto error = CheckUnshaped(path, out)) return error;
  if (kind == "json") return SetSchema(value, path, out);
  out.field = path;
  if (kind == "json_object") {
    if (value.boolean() == nullptr) return BadField(path, "must be a boolean");
    out.kind = *value.boolean() ? AnswerShape::Kind::kObject : AnswerShape::Kind::kText;
    return std::nullopt;
  }
  if (kind == "choice") {
    out.kind = AnswerShape::Kind::kChoice;
    for (const Json& each : value.array() != nullptr ? *value.array() : JsonArray()) {
      if (each.string() == nullptr) return BadField(path, "must hold strings");
      out.choices.push_back(*each.string());
    }
    if (out.choices.empty()) return BadField(path, "must be a list of strings, not empty");
    return std::nullopt;
  }
  if (kind != "regex" && kind != "grammar") {
    return BadField(path, "not supported", "unsupported_parameter");
  }
  if (value.string() == nullptr) return BadField(path, "must be a string");
  out.kind = kind == "regex" ? AnswerShape::Kind::kRegex : AnswerShape::Kind::kLark;
  out.text = *value.string();
  return std::nullopt;
}

std::optional<ApiError> ReadGuides(const Fields& fields, AnswerShape& out) {
  for (const char* kind : {"choice", "grammar", "json", "regex"}) {
    const std::string name = std::string("guided_") + kind;
    const Json* value = fields.find(name);
    if (value == nullptr) continue;
    if (auto error = ReadGuide(kind, *value, name, out)) return error;
  }
  const Json* all = fields.find("structured_outputs");
  if (all == nullptr) return std::nullopt;
  for (const auto& [kind, value] : *all->object()) {
    if (value.is_null()) continue;
    if (auto error = ReadGuide(kind, value, "structured_outputs." + kind, out)) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> ReadStreamOptions(const Fields& fields, TurnRequest& out) {
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return std::nullopt;
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
  return std::nullopt;
}

}  // namespace

std::span<const Field> SharedFields() { return kSharedFields; }

std::vector<Field> JoinFields(std::span<const Field> own, std::span<const Field> shared) {
  std::vector<Field> all(own.begin(), own.end());
  all.insert(all.end(), shared.begin(), shared.end());
  std::sort(all.begin(), all.end(), [](const Field& a, const Field& b) { return a.name < b.name; });
  return all;
}

std::optional<ApiError> ReadResponseFormat(const Json& format, const std::string& path,
                                           AnswerShape& out) {
  if (auto error = CheckUnshaped(path, out)) return error;
  const Json* type = format.Find("type");
  const std::string* name = type == nullptr ? nullptr : type->string();
  if (name == nullptr) return BadField(path + ".type", "must be a string");
  if (*name == "text") return std::nullopt;
  if (*name == "json_object") {
    out.kind = AnswerShape::Kind::kObject;
    out.field = path;
    return std::nullopt;
  }
  if (*name != "json_schema") {
    return BadField(path + ".type", "must be text, json_object or json_schema");
  }
  const Json* inner = format.Find("json_schema");
  const std::string inner_path = inner == nullptr ? path : path + ".json_schema";
  const Json& about = inner == nullptr ? format : *inner;
  const Json* schema = about.Find("schema");
  if (schema == nullptr) return BadField(inner_path + ".schema", "is missing");
  if (auto error = SetSchema(*schema, inner_path + ".schema", out)) return error;
  const auto word = [&about](const char* member, const char* otherwise) {
    const Json* value = about.Find(member);
    return value == nullptr || value->string() == nullptr ? otherwise : *value->string();
  };
  out.name = word("name", "response");
  out.description = word("description", "");
  return std::nullopt;
}

std::optional<ApiError> CheckToolChoice(const TurnRequest& turn) {
  const auto callable = CallableTools(
      turn.conversation.tools, {.tool_choice = turn.tool_choice, .named_tool = turn.named_tool});
  if (!callable.ok()) return BadField("tool_choice", callable.status().message());
  return std::nullopt;
}

std::optional<ApiError> ReadEffort(const std::string& word, const std::string& path,
                                   TurnRequest& out) {
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
  return std::nullopt;
}

Priority PriorityOf(const Fields& fields) {
  const int64_t priority = fields.integer("priority").value_or(0);
  return static_cast<Priority>(priority + static_cast<int64_t>(Priority::kNormal));
}

std::optional<ApiError> ReadShared(const Fields& fields, TurnRequest& out) {
  ReadSampling(fields, out);
  if (auto error = ReadStops(fields, out.stops)) return error;
  if (auto error = ReadTokens(fields, out.sampling)) return error;
  if (auto error = ReadGuides(fields, out.answer)) return error;
  if (auto error = ReadStreamOptions(fields, out)) return error;
  out.model = fields.text("model").value_or("");
  out.max_tokens = static_cast<int>(fields.integer("max_tokens").value_or(0));
  out.num_choices = static_cast<int>(fields.integer("n").value_or(1));
  out.streams = fields.flag("stream", false);
  out.wants_progress = fields.flag("return_progress", false);
  out.cache_salt = fields.text("cache_salt").value_or("");
  out.timeout_us = static_cast<int64_t>(fields.number("timeout").value_or(0) * 1e6);
  out.priority = PriorityOf(fields);
  if (const auto top = fields.integer("prompt_logprobs")) {
    if (out.streams) return BadField("prompt_logprobs", "not in a stream");
    out.sampling.num_prompt_logprobs = static_cast<int>(*top);
  }
  return std::nullopt;
}

}  // namespace hearth
