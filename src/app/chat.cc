// SPDX-License-Identifier: Apache-2.0
#include "app/chat.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <span>

#include "app/model_argument.h"
#include "app/open_engine.h"
#include "app/open_format.h"
#include "app/open_model.h"
#include "app/open_text.h"
#include "app/paging.h"
#include "engine/engine.h"
#include "engine/event_buffer.h"
#include "model/reference.h"
#include "sampling/sampler.h"
#include "server/turns/reply_masks.h"
#include "text/utf8_stream.h"

namespace hearth {
namespace {

constexpr int kUsualContext = 16384;
// Enough for long answers with their reasoning; a small model that repeats itself for ever still
// ends within minutes.
constexpr int kUsualMaxTokens = 4096;
using Steady = std::chrono::steady_clock;

struct Wish {
  std::vector<Token> prompt;
  SamplingParams sampling;
  int max_tokens = 0;  // the last one may be a stop token
  std::shared_ptr<TokenMask> mask;
};

struct Spoken {
  TurnEnd end = TurnEnd::kStop;  // kLength when there would be more
  TurnFigures figures;
};

// What a chat needs of whatever computes: tokens that continue a prompt, as they come.
class Speaker {
 public:
  virtual ~Speaker() = default;
  using Said = std::function<void(Token token)>;
  virtual Result<Spoken> Speak(Wish wish, const Said& said, const std::function<void()>& wait,
                               const std::atomic<bool>& interrupted) = 0;
};

// An engine with room for one conversation. What it computed for a turn is cached for the next.
class EngineSpeaker : public Speaker {
 public:
  static Result<std::unique_ptr<Speaker>> Make(const Model& model, const BackendFlags& flags,
                                               int context) {
    EngineOptions options;
    options.scheduler.max_sequences = 1;
    HEARTH_ASSIGN(BackendOptions wanted, OptionsFrom(flags));
    wanted.max_rows = WidestStepRows(options.scheduler);
    HEARTH_ASSIGN(BackendPlan plan, PlanBackend(model, wanted));
    // Two more than the context takes, which the scheduler keeps free for a sequence that runs.
    SetBlocks(plan.kv, static_cast<int>(plan.kv.BlocksUpTo(context)) + 2);
    const KvLayout kv = plan.kv;
    HEARTH_ASSIGN(const uint64_t room, UsableBytesOn(wanted));
    HEARTH_ASSIGN(FittedPlan fitted,
                  PlanWithin(model, wanted, flags.paging, kv.total_bytes(), room));
    plan = std::move(fitted.backend);
    plan.kv = kv;
    HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenBackend(model, plan));
    options.scheduler.max_context = context;
    options.scheduler.experts = ExpertsOf(model.spec);
    options.scheduler.max_step_tokens = wanted.max_step_tokens;
    options.admission.max_wait_s = 1e9;  // nobody else asks
    return std::unique_ptr<Speaker>(
        std::make_unique<EngineSpeaker>(std::make_unique<Engine>(std::move(backend), options)));
  }
  explicit EngineSpeaker(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  Result<Spoken> Speak(Wish wish, const Said& said, const std::function<void()>& wait,
                       const std::atomic<bool>& interrupted) override {
    constexpr int64_t kLookUs = 50'000;  // how late an interrupt may be noticed
    Request request;
    request.prompt = std::move(wish.prompt);
    request.sampling = std::move(wish.sampling);
    request.max_tokens = wish.max_tokens;
    request.mask = std::move(wish.mask);
    const auto buffer = std::make_shared<EventBuffer>();
    const Admission admission = engine_->Submit(std::move(request), buffer);
    HEARTH_TRY(admission.status);
    bool cancels = false;
    while (!buffer->ended()) {
      const std::vector<TokenEvent> events = buffer->Wait(kLookUs);
      for (const TokenEvent& event : events) {
        if (!cancels) said(event.token);
      }
      if (events.empty()) wait();
      if (!interrupted || cancels) continue;
      engine_->Cancel(admission.id);
      cancels = true;
    }
    return Ended(*buffer->ended(), cancels);
  }

 private:
  static Result<Spoken> Ended(const RequestRecord& record, bool was_cancelled) {
    Spoken spoken;
    spoken.figures.num_prompt = record.num_prompt;
    spoken.figures.num_cached = record.num_cached;
    spoken.figures.num_generated = record.num_generated;
    const auto since = [&](int64_t us) {
      return static_cast<double>(std::max<int64_t>(0, us - record.arrived_us)) / 1e6;
    };
    spoken.figures.first_token_s = since(record.first_token_us);
    spoken.figures.total_s = since(record.ended_us);
    if (was_cancelled) {
      spoken.end = TurnEnd::kInterrupted;
    } else if (record.finish == Finish::kLength) {
      spoken.end = TurnEnd::kLength;
    } else if (record.finish != Finish::kStop) {
      return Error(Code::kCorrupt, "the reply ended with %s: %s", NameOf(record.finish),
                   record.detail.c_str());
    }
    return spoken;
  }

  const std::unique_ptr<Engine> engine_;
};

// The slow one that others are judged by; computes every turn from its first token.
class ReferenceSpeaker : public Speaker {
 public:
  explicit ReferenceSpeaker(const Model& model) : model_(model) {}

  Result<Spoken> Speak(Wish wish, const Said& said, const std::function<void()>&,
                       const std::atomic<bool>& interrupted) override {
    const Steady::time_point start = Steady::now();
    Reference reference(model_);
    std::vector<float> logits;
    const auto append = [&](std::span<const Token> tokens) {
      return reference.Append(
          tokens, Reference::Wanted::kLastRow,
          [&](int, std::span<const double> row) { logits.assign(row.begin(), row.end()); });
    };
    HEARTH_TRY(append(wish.prompt));
    Spoken spoken{TurnEnd::kLength, {.num_prompt = static_cast<int>(wish.prompt.size())}};
    TurnFigures& figures = spoken.figures;
    for (int i = 0; i < wish.max_tokens; ++i) {
      const Token token = sampler_.Choose(logits, wish.sampling,
                                          SamplerState::WithoutPast(static_cast<uint64_t>(i)));
      if (token < 0) return Error(Code::kCorrupt, "the model computed NaN logits");
      said(token);
      figures.total_s = std::chrono::duration<double>(Steady::now() - start).count();
      if (i == 0) figures.first_token_s = figures.total_s;
      figures.num_generated = i + 1;
      if (EndsSequence(wish.sampling, token)) spoken.end = TurnEnd::kStop;
      if (interrupted) spoken.end = TurnEnd::kInterrupted;
      if (spoken.end != TurnEnd::kLength) break;
      HEARTH_TRY(append(std::span(&token, 1)));
    }
    return spoken;
  }

 private:
  const Model& model_;
  Sampler sampler_;
};

// Shows whole characters, and keeps the reply.
class ReplyTaker {
 public:
  ReplyTaker(std::unique_ptr<ReplyReader> reader, const TurnListener& listener)
      : reader_(std::move(reader)), listener_(listener) {}
  void Take(Token token) {
    reader_->Feed(token, events_);
    Deliver();
  }
  Message Finish() {
    reader_->Finish(events_);
    Deliver();
    EndText();
    return std::move(message_);
  }

 private:
  void EndText() {
    std::string rest;
    utf8_.Finish(rest);
    if (!rest.empty()) listener_.hear(last_kind_, rest);
  }
  void Deliver() {
    using Kind = ReplyEvent::Kind;
    for (const ReplyEvent& event : events_) {
      if (event.kind != last_kind_) EndText();
      last_kind_ = event.kind;
      AddToMessage(event, message_);
      const bool is_whole = event.kind == Kind::kToolCall || event.kind == Kind::kToolCallEnd;
      std::string text = is_whole ? event.text : "";
      if (!is_whole) utf8_.Append(event.text, text);
      if (is_whole || !text.empty()) listener_.hear(event.kind, text);
    }
    events_.clear();
  }

  const std::unique_ptr<ReplyReader> reader_;
  const TurnListener& listener_;
  std::vector<ReplyEvent> events_;
  Utf8Stream utf8_;
  ReplyEvent::Kind last_kind_ = ReplyEvent::Kind::kContent;
  Message message_;
};

// "smollm2" of a path to smollm2.gguf; other names are the model's already.
std::string ShownName(const std::string& given) {
  const std::filesystem::path path(given);
  const bool is_path = given.find('/') != std::string::npos || path.extension() == ".gguf";
  return is_path ? path.stem().string() : given;
}

class LocalAnswerer : public Answerer {
 public:
  LocalAnswerer(const ChatOptions& options, std::string name, Model model, ModelText text)
      : options_(options),
        name_(std::move(name)),
        model_(std::move(model)),
        tokenizer_(std::move(text.tokenizer)),
        format_(std::move(text.format)),
        defaults_(text.sampling) {}

  Status Start() {
    HEARTH_ASSIGN(context_, ContextOf(model_.spec, options_.context));
    if (options_.context == 0) context_ = std::min(context_, kUsualContext);
    if (options_.schema) HEARTH_TRY(StartMasks());
    if (options_.backend == "reference") {
      speaker_ = std::make_unique<ReferenceSpeaker>(model_);
      return Status();
    }
    HEARTH_ASSIGN(speaker_, EngineSpeaker::Make(model_, options_.hardware, context_));
    return Status();
  }

  std::string name() const override { return name_; }
  std::string place() const override { return "in this process"; }
  int max_context() const override { return context_; }

  Status Check(const TalkSettings& settings) const override {
    if (settings.effort && !format_->has_reasoning_effort()) {
      return Error(Code::kInvalid,
                   "this model has no reasoning effort to set; leave out --reasoning-effort");
    }
    return Validate(ParamsOf(settings), model_.spec.vocab_size);
  }

  Result<TurnResult> Answer(const Conversation& conversation, const TalkSettings& settings,
                            const TurnListener& listener,
                            const std::atomic<bool>& interrupted) override {
    HEARTH_TRY(Check(settings));
    Wish wish;
    HEARTH_ASSIGN(wish.prompt, Render(conversation));
    const ReplyStart start = format_->StartOf(conversation, wish.prompt);
    const int left = context_ - static_cast<int>(wish.prompt.size());
    if (left <= 0) {
      return Error(Code::kInvalid, "the conversation has %zu tokens, but the context length is %d",
                   wish.prompt.size(), context_);
    }
    const int bound = settings.max_tokens.value_or(kUsualMaxTokens);  // 0: none
    wish.max_tokens = bound > 0 ? std::min(bound, left) : left;
    wish.sampling = ParamsOf(settings);
    if (settings.seed != last_seed_) num_turns_ = 0;
    last_seed_ = settings.seed;
    wish.sampling.seed += num_turns_++;  // the next turn must not repeat this one's draws
    if (masks_ != nullptr) {
      HEARTH_ASSIGN(wish.mask, masks_->New(shape_));
    }
    ReplyTaker taker(format_->NewReaderAt(start), listener);
    HEARTH_ASSIGN(const Spoken spoken, speaker_->Speak(
                                           std::move(wish), [&](Token token) { taker.Take(token); },
                                           listener.wait, interrupted));
    TurnResult result{spoken.end, taker.Finish(), spoken.figures};
    const bool is_bound = bound > 0 && bound <= left;
    if (result.end == TurnEnd::kLength && !is_bound) result.end = TurnEnd::kContext;
    return result;
  }

 private:
  // As the server holds replies to `response_format`.
  Status StartMasks() {
    if (options_.backend == "reference") {
      return Error(Code::kUnsupported, "--json-schema needs the CPU backend");
    }
    HEARTH_ASSIGN(masks_, ReplyMasks::Make(*tokenizer_, format_->stop_tokens(),
                                           ReplyStyleOf(*format_, *tokenizer_)));
    shape_.answer.kind = AnswerShape::Kind::kSchema;
    shape_.answer.field = "--json-schema";
    shape_.answer.name = "reply";
    shape_.answer.schema = *options_.schema;
    HEARTH_ASSIGN(const std::shared_ptr<TokenMask> mask,
                  masks_->New(shape_).Within("--json-schema"));
    return Status();
  }

  Result<std::vector<Token>> Render(const Conversation& conversation) const {
    const AnswerFormat answer{shape_.answer.name, "", shape_.answer.schema};
    return format_->Render(
        conversation, {.date = options_.date, .answer = masks_ != nullptr ? &answer : nullptr});
  }

  SamplingParams ParamsOf(const TalkSettings& settings) const {
    SamplingParams params = OpenSampling();
    const auto set = [](const std::optional<double>& given, float& to) {
      if (given) to = static_cast<float>(*given);
    };
    set(settings.temperature, params.temperature);
    set(settings.top_p, params.top_p);
    set(settings.min_p, params.min_p);
    params.top_k = settings.top_k.value_or(params.top_k);
    FillOpen(defaults_, params);
    params.seed = settings.seed.value_or(0);
    params.stop_tokens = format_->stop_tokens();
    return params;
  }

  const ChatOptions options_;
  const std::string name_;
  const Model model_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  const std::unique_ptr<ChatFormat> format_;
  const SamplingDefaults defaults_;
  std::unique_ptr<Speaker> speaker_;
  std::unique_ptr<ReplyMasks> masks_;  // null: any text is a reply
  TurnRequest shape_;                  // what the masks are made from
  std::optional<uint64_t> last_seed_;
  uint64_t num_turns_ = 0;
  int context_ = 0;
};

class LocalSource : public AnswererSource {
 public:
  explicit LocalSource(ChatOptions options) : options_(std::move(options)) {}
  Status Find(const std::string& name) override {
    HEARTH_ASSIGN(const std::string path, ModelPath(name));
    return OpenModel(path).status();  // reads no weights
  }
  Result<std::unique_ptr<Answerer>> Open(const std::string& name) override {
    HEARTH_ASSIGN(const std::string path, ModelPath(name));
    HEARTH_ASSIGN(Model model, OpenModelFor(path, options_.backend, options_.hardware));
    HEARTH_ASSIGN(ModelText text, OpenModelText(model, path));
    auto answerer = std::make_unique<LocalAnswerer>(options_, ShownName(name), std::move(model),
                                                    std::move(text));
    HEARTH_TRY(answerer->Start());
    return std::unique_ptr<Answerer>(std::move(answerer));
  }

 private:
  const ChatOptions options_;
};

}  // namespace

std::unique_ptr<AnswererSource> NewLocalSource(ChatOptions options) {
  return std::make_unique<LocalSource>(std::move(options));
}

}  // namespace hearth
