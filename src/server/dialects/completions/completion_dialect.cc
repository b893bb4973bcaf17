// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/completions/completion_dialect.h"

#include <memory>
#include <utility>

#include "server/dialects/chat/chat_writer.h"
#include "server/dialects/plain_prompts.h"
#include "server/dialects/sampling_fields.h"

namespace hearth {
namespace {

using enum FieldKind;
using enum FieldUse;

constexpr Field kOwnFields[] = {
    {"best_of", kInteger, kRefused, 0, 0, "use n and choose among the replies", "1"},
    {"echo", kBoolean, kHonoured, 0, 0,
     "the reply begins with the prompt; with `logprobs` also those of its tokens"},
    {"logprobs", kInteger, kHonoured, 0, 20, "log-probabilities, and so many of the likeliest"},
    {"prompt", kAny, kHonoured, 0, 0,
     "a string, token ids, or a list of up to 16 of either; no chat template is applied"},
    {"response_format", kObject, kHonoured, 0, 0, "`text`, `json_object` or `json_schema`"},
    {"suffix", kAny, kRefused, 0, 0, "fill-in-the-middle is not supported"},
};
constexpr size_t kMaxPrompts = 16;

const std::vector<Field>& Table() {
  static const std::vector<Field> table = JoinFields(kOwnFields, SharedFields());
  return table;
}

class CompletionDialect final : public Dialect {
 public:
  std::string name() const override { return "completion"; }
  std::vector<DialectRoute> routes() const override {
    return {{{"POST", "/v1/completions", Auth::kKey, "Continues a prompt", Table()}}};
  }
  ApiResult<DialectTurn> Read(const Json& body, const HttpRequest&) const override {
    HEARTH_ASSIGN(CompletionRequest read, ReadCompletionRequest(body));
    const auto write = [scores = read.num_prompt_logprobs](const TurnRequest& request,
                                                           const ReplyFacts& facts) {
      return std::make_unique<CompletionWriter>(request, scores, facts);
    };
    return DialectTurn{std::move(read.turn), write};
  }
};

}  // namespace

std::shared_ptr<const Dialect> MakeCompletionDialect() {
  return std::make_shared<CompletionDialect>();
}

std::span<const Field> CompletionFields() { return Table(); }

ApiResult<CompletionRequest> ReadCompletionRequest(const Json& body) {
  HEARTH_ASSIGN(const Fields fields, ReadFields(body, Table()));
  CompletionRequest read;
  TurnRequest& out = read.turn;
  out.prompt_field = "prompt";
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) return BadField("prompt", "is missing");
  HEARTH_TRY(ReadPlainPrompts(*prompt, "prompt", kMaxPrompts, out.plain_prompts));
  HEARTH_TRY(ReadShared(fields, out));
  // What this form's clients expect of it; a chat goes on to its own end.
  if (!fields.integer("max_tokens")) out.max_tokens = 16;
  out.prompt_only = fields.integer("max_tokens").value_or(1) == 0;
  read.num_prompt_logprobs = out.sampling.num_prompt_logprobs;
  if (const auto top = fields.integer("logprobs")) {
    out.sampling.num_logprobs = static_cast<int>(*top);
  }
  out.echoes = fields.flag("echo", false);
  if (out.echoes && out.sampling.num_logprobs > out.sampling.num_prompt_logprobs) {
    out.sampling.num_prompt_logprobs = out.sampling.num_logprobs;
    out.scores_field = "logprobs";
  }
  if (const Json* format = fields.find("response_format")) {
    HEARTH_TRY(ReadResponseFormat(*format, "response_format", out.answer));
  }
  return read;
}

CompletionWriter::CompletionWriter(const TurnRequest& request, int num_prompt_logprobs,
                                   ReplyFacts facts)
    : facts_(std::move(facts)),
      streams_(request.streams),
      wants_usage_(request.wants_usage),
      num_logprobs_(request.sampling.num_logprobs),
      num_prompt_logprobs_(num_prompt_logprobs),
      choices_per_prompt_(request.num_choices),
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

std::string CompletionWriter::AddPrompt(int index, const std::vector<AnswerLogprob>& prompt) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  if (num_prompt_logprobs_ >= 0) {
    choice.prompt_logprobs = PromptLogprobsAsJson(prompt, num_prompt_logprobs_);
  }
  if (facts_.echoes.empty()) return "";
  const EchoedPrompt& echo = facts_.echoes[static_cast<size_t>(index / choices_per_prompt_)];
  for (size_t i = echo.num_hidden; i < echo.pieces.size(); ++i) choice.text += echo.pieces[i];
  Json logprobs;
  if (num_logprobs_ >= 0) {
    const auto shown = [&](size_t i) { return i < echo.num_hidden ? 0 : echo.pieces[i].size(); };
    choice.logprobs.AddUnknown(echo.pieces[0], shown(0));
    for (size_t i = 0; i < prompt.size(); ++i) {
      choice.logprobs.Add(prompt[i], num_logprobs_, shown(i + 1));
    }
    logprobs = choice.logprobs.AsJson();
    if (streams_) choice.logprobs = {};
  }
  return Chunk(index, choice.text, Json(), std::move(logprobs));
}

std::string CompletionWriter::Add(int index, const Delta& delta) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  Json logprobs;
  if (num_logprobs_ >= 0) {
    LogprobLists lists;
    lists.set_offset(choice.text.size());
    for (const AnswerLogprob& one : delta.logprobs) {
      lists.Add(one);
      if (!streams_) choice.logprobs.Add(one);
    }
    logprobs = lists.AsJson();
  }
  choice.text += delta.text;
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
    Choice& choice = choices_[i];
    JsonObject whole{{"index", static_cast<int64_t>(i)},
                     {"text", choice.text},
                     {"logprobs", num_logprobs_ >= 0 ? choice.logprobs.AsJson() : Json()},
                     {"finish_reason", choice.finish_reason}};
    if (num_prompt_logprobs_ >= 0) {
      whole.push_back({"prompt_logprobs", std::move(choice.prompt_logprobs)});
    }
    choices.push_back(std::move(whole));
  }
  Json whole = Envelope(std::move(choices));
  whole.object()->push_back({"usage", UsageAsJson(usage)});
  return WriteJson(whole);
}

}  // namespace hearth
