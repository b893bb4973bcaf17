// SPDX-License-Identifier: Apache-2.0
#include "server/completion_dialect.h"

#include <memory>
#include <utility>

#include "server/chat_writer.h"
#include "server/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kOwnFields[] = {
    {"best_of", kInteger, kRefused, 0, 0, "ask for n and choose yourself", "1"},
    {"echo", kBoolean, kRefused, 0, 0, "the prompt is not repeated", "false"},
    {"logprobs", kInteger, kHonoured, 0, 20, "log-probabilities, and so many of the likeliest"},
    {"prompt", kAny, kHonoured, 0, 0,
     "a string, token ids, or a list of up to 16 of either; no chat template is applied"},
    {"response_format", kObject, kHonoured, 0, 0, "`text`, `json_object` or `json_schema`"},
    {"suffix", kAny, kRefused, 0, 0, "the models fill no gaps"},
};
constexpr size_t kMaxPrompts = 16;

const std::vector<Field>& Table() {
  static const std::vector<Field> table = JoinFields(kOwnFields, SharedFields());
  return table;
}

std::optional<std::vector<Token>> TokensOf(const JsonArray& ids) {
  std::vector<Token> tokens;
  for (const Json& id : ids) {
    const std::optional<int64_t> number = id.integer();
    if (!number || *number < 0 || *number > 1 << 29) return std::nullopt;
    tokens.push_back(static_cast<Token>(*number));
  }
  return tokens;
}

// A list of numbers is one prompt; a list of strings or lists is several.
std::optional<ApiError> ReadPrompts(const Json& prompt, std::vector<PlainPrompt>& out) {
  const ApiError wrong = BadField("prompt", "must be a string, token ids, or a list of either");
  if (prompt.string() != nullptr) {
    out.emplace_back(*prompt.string());
    return std::nullopt;
  }
  const JsonArray* list = prompt.array();
  if (list == nullptr || list->empty()) return wrong;
  if (list->front().number()) {
    std::optional<std::vector<Token>> tokens = TokensOf(*list);
    if (!tokens) return wrong;
    out.emplace_back(*std::move(tokens));
    return std::nullopt;
  }
  if (list->size() > kMaxPrompts) {
    return BadField("prompt", Printf("at most %zu prompts, found %zu", kMaxPrompts, list->size()));
  }
  for (const Json& each : *list) {
    if (each.string() != nullptr) {
      out.emplace_back(*each.string());
      continue;
    }
    auto tokens = each.array() == nullptr ? std::nullopt : TokensOf(*each.array());
    if (!tokens) return wrong;
    out.emplace_back(*std::move(tokens));
  }
  return std::nullopt;
}

// The four parallel lists of this older form.
Json LogprobsAsJson(const std::vector<AnswerLogprob>& logprobs, size_t offset) {
  JsonArray tokens, values, tops, offsets;
  for (const AnswerLogprob& one : logprobs) {
    tokens.emplace_back(one.chosen.bytes);
    values.emplace_back(static_cast<double>(one.chosen.logprob));
    offsets.emplace_back(static_cast<int64_t>(offset));
    offset += one.chosen.bytes.size();
    JsonObject top;
    for (const SpelledLogprob& other : one.top) {
      // Two tokens may be spelled alike once made printable; names may not repeat.
      const std::string name = *ParseJson(WriteJson(Json(other.bytes)))->string();
      bool is_new = true;
      for (const JsonMember& member : top) is_new = is_new && member.first != name;
      if (is_new) top.emplace_back(name, static_cast<double>(other.logprob));
    }
    tops.emplace_back(std::move(top));
  }
  return JsonObject{{"tokens", std::move(tokens)},
                    {"token_logprobs", std::move(values)},
                    {"top_logprobs", std::move(tops)},
                    {"text_offset", std::move(offsets)}};
}

}  // namespace

std::span<const Field> CompletionFields() { return Table(); }

ApiResult<TurnRequest> ReadCompletionRequest(Json body) {
  ApiResult<Fields> read = ReadFields(body, Table());
  if (auto* error = std::get_if<ApiError>(&read)) return std::move(*error);
  const Fields& fields = std::get<Fields>(read);
  TurnRequest out;
  out.prompt_field = "prompt";
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) return BadField("prompt", "is missing");
  if (auto error = ReadPrompts(*prompt, out.plain_prompts)) return *std::move(error);
  if (auto error = ReadShared(fields, out)) return *std::move(error);
  // What this form's clients expect of it; a chat goes on to its own end.
  if (!fields.integer("max_tokens")) out.max_tokens = 16;
  if (const auto top = fields.integer("logprobs")) {
    out.sampling.num_logprobs = static_cast<int>(*top);
  }
  if (const Json* format = fields.find("response_format")) {
    if (auto error = ReadResponseFormat(*format, "response_format", out.answer)) {
      return *std::move(error);
    }
  }
  return out;
}

Dialect CompletionDialect() {
  return {"completion",
          [](Json body, const HttpRequest&) { return ReadCompletionRequest(std::move(body)); },
          [](const TurnRequest& request, const ReplyFacts& facts) {
            return std::make_unique<CompletionWriter>(request, facts);
          },
          [](const ApiError& error) { return WriteJson(OpenAiError(error)); }};
}

CompletionWriter::CompletionWriter(const TurnRequest& request, ReplyFacts facts)
    : facts_(std::move(facts)),
      streams_(request.streams),
      wants_usage_(request.wants_usage),
      wants_logprobs_(request.sampling.num_logprobs >= 0),
      choices_(request.plain_prompts.size() * static_cast<size_t>(request.num_choices)) {}

Json CompletionWriter::Envelope(JsonArray choices) const {
  return JsonObject{{"id", "cmpl-" + facts_.id},
                    {"object", "text_completion"},
                    {"created", facts_.created_s},
                    {"model", facts_.model},
                    {"system_fingerprint", facts_.fingerprint},
                    {"choices", std::move(choices)}};
}

std::string CompletionWriter::Chunk(int choice, Json text, Json finish_reason,
                                    Json logprobs) const {
  if (!streams_) return "";
  Json chunk = Envelope({JsonObject{{"index", choice},
                                    {"text", std::move(text)},
                                    {"logprobs", std::move(logprobs)},
                                    {"finish_reason", std::move(finish_reason)}}});
  if (wants_usage_) chunk.object()->push_back({"usage", Json()});
  return AsEvent(chunk);
}

std::string CompletionWriter::Add(int index, const Delta& delta) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  Json logprobs;
  if (wants_logprobs_) logprobs = LogprobsAsJson(delta.logprobs, choice.text.size());
  choice.text += delta.text;
  choice.logprobs.insert(choice.logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
  return Chunk(index, delta.text, Json(), std::move(logprobs));
}

std::string CompletionWriter::EndChoice(int index, const ChoiceEnd& end) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  choice.finish_reason = end.why == ChoiceEnd::Why::kLength ? "length" : "stop";
  return Chunk(index, "", choice.finish_reason, Json());
}

std::string CompletionWriter::End(const TurnUsage& usage) {
  if (!streams_) return "";
  std::string out;
  if (wants_usage_) {
    Json last = Envelope({});
    last.object()->push_back({"usage", UsageAsJson(usage)});
    out = AsEvent(last);
  }
  return out + "data: [DONE]\n\n";
}

std::string CompletionWriter::Fail(const ApiError& error) { return AsEvent(OpenAiError(error)); }

std::string CompletionWriter::Progress(const PromptProgress& progress) const {
  Json chunk = Envelope({});
  chunk.object()->push_back({"prompt_progress", ProgressAsJson(progress)});
  return AsEvent(chunk);
}

std::string CompletionWriter::Whole(const TurnUsage& usage) {
  JsonArray choices;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    choices.push_back(
        JsonObject{{"index", static_cast<int64_t>(i)},
                   {"text", choice.text},
                   {"logprobs", wants_logprobs_ ? LogprobsAsJson(choice.logprobs, 0) : Json()},
                   {"finish_reason", choice.finish_reason}});
  }
  Json whole = Envelope(std::move(choices));
  whole.object()->push_back({"usage", UsageAsJson(usage)});
  return WriteJson(whole);
}

}  // namespace hearth
