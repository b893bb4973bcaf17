// SPDX-License-Identifier: Apache-2.0
#include "app/chat.h"

#include <algorithm>
#include <span>

#include "app/open_engine.h"
#include "app/open_format.h"
#include "app/open_model.h"
#include "app/open_tokenizer.h"
#include "engine/engine.h"
#include "engine/event_buffer.h"
#include "model/reference.h"
#include "sampling/sampler.h"
#include "text/utf8_stream.h"

namespace hearth {
namespace {

constexpr int kUsualContext = 16384;

// What a chat needs of whatever computes: tokens that continue a prompt, as they come.
class Speaker {
 public:
  virtual ~Speaker() = default;
  using Said = std::function<void(Token token)>;
  // At most `max_tokens`; the last one may be a stop token. kLength when there would be more.
  virtual Result<ChatEnd> Speak(const std::vector<Token>& prompt, const SamplingParams& params,
                                int max_tokens, const Said& said,
                                const std::atomic<bool>& interrupted) = 0;
};

// An engine with room for one conversation. What it computed for a turn is cached for the next.
class EngineSpeaker : public Speaker {
 public:
  static Result<std::unique_ptr<Speaker>> Make(const Model& model, const CpuFlags& flags,
                                               int context) {
    CpuOptions cpu;
    HEARTH_TRY(FillFrom(flags, cpu));
    // Two more than the context takes, which the scheduler keeps free for a sequence that runs.
    cpu.kv_blocks = {static_cast<int>(CpuKvLayout(model.spec).BlocksUpTo(context)) + 2};
    HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenCpuBackend(model, cpu));
    EngineOptions options;
    options.scheduler.max_context = context;
    options.scheduler.experts = ExpertsOf(model.spec);
    options.scheduler.max_sequences = 1;
    options.scheduler.max_step_tokens = cpu.max_step_tokens;
    options.admission.max_wait_s = 1e9;  // nobody else asks
    return std::unique_ptr<Speaker>(
        std::make_unique<EngineSpeaker>(std::make_unique<Engine>(std::move(backend), options)));
  }
  explicit EngineSpeaker(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  Result<ChatEnd> Speak(const std::vector<Token>& prompt, const SamplingParams& params,
                        int max_tokens, const Said& said,
                        const std::atomic<bool>& interrupted) override {
    constexpr int64_t kLookUs = 50'000;  // how late an interrupt may be noticed
    Request request;
    request.prompt = prompt;
    request.sampling = params;
    request.max_tokens = max_tokens;
    const auto buffer = std::make_shared<EventBuffer>();
    const Admission admission = engine_->Submit(std::move(request), buffer);
    HEARTH_TRY(admission.status);
    bool cancels = false;
    while (!buffer->ended()) {
      for (const TokenEvent& event : buffer->Wait(kLookUs)) {
        if (!cancels) said(event.token);
      }
      if (!interrupted || cancels) continue;
      engine_->Cancel(admission.id);
      cancels = true;
    }
    const RequestRecord record = *buffer->ended();
    if (cancels) return ChatEnd::kInterrupted;
    if (record.finish == Finish::kStop) return ChatEnd::kStop;
    if (record.finish == Finish::kLength) return ChatEnd::kLength;
    return Error(Code::kCorrupt, "the reply ended with %s: %s", NameOf(record.finish),
                 record.detail.c_str());
  }

 private:
  const std::unique_ptr<Engine> engine_;
};

// The slow one that others are judged by; computes every turn from its first token.
class ReferenceSpeaker : public Speaker {
 public:
  explicit ReferenceSpeaker(const Model& model) : model_(model) {}

  Result<ChatEnd> Speak(const std::vector<Token>& prompt, const SamplingParams& params,
                        int max_tokens, const Said& said,
                        const std::atomic<bool>& interrupted) override {
    Reference reference(model_);
    std::vector<float> logits;
    const auto append = [&](std::span<const Token> tokens) {
      return reference.Append(
          tokens, Reference::Wanted::kLastRow,
          [&](int, std::span<const double> row) { logits.assign(row.begin(), row.end()); });
    };
    HEARTH_TRY(append(prompt));
    for (int i = 0; i < max_tokens; ++i) {
      const Token token =
          sampler_.Choose(logits, params, SamplerState::WithoutPast(static_cast<uint64_t>(i)));
      if (token < 0) return Error(Code::kCorrupt, "the model computed NaN logits");
      said(token);
      if (EndsSequence(params, token)) return ChatEnd::kStop;
      if (interrupted) return ChatEnd::kInterrupted;
      HEARTH_TRY(append(std::span(&token, 1)));
    }
    return ChatEnd::kLength;
  }

 private:
  const Model& model_;
  Sampler sampler_;
};

class LocalChat : public Chat {
 public:
  LocalChat(ChatOptions options, Model model, std::unique_ptr<Tokenizer> tokenizer,
            std::unique_ptr<ChatFormat> format)
      : options_(std::move(options)),
        model_(std::move(model)),
        tokenizer_(std::move(tokenizer)),
        format_(std::move(format)) {
    if (options_.effort == "low") conversation_.reasoning_effort = ReasoningEffort::kLow;
    if (options_.effort == "medium") conversation_.reasoning_effort = ReasoningEffort::kMedium;
    if (options_.effort == "high") conversation_.reasoning_effort = ReasoningEffort::kHigh;
    const float usual = model_.spec.family == Family::kGptOss ? 1.0f : 0.7f;
    params_.temperature = options_.temperature.value_or(usual);
    params_.top_k = options_.top_k;
    params_.top_p = options_.top_p;
    params_.min_p = options_.min_p;
    params_.seed = options_.seed;
    params_.stop_tokens = format_->stop_tokens();
  }

  Status Start() {
    HEARTH_TRY(Validate(params_, model_.spec.vocab_size));  // a flag's range lets NaN through
    const int wanted = options_.context > 0 ? options_.context : kUsualContext;
    context_ = std::min(model_.spec.max_context, wanted);
    if (options_.backend == "reference") {
      speaker_ = std::make_unique<ReferenceSpeaker>(model_);
      return Status();
    }
    HEARTH_ASSIGN(speaker_, EngineSpeaker::Make(model_, options_.cpu, context_));
    return Status();
  }

  void SetSystem(const std::string& text) override {
    Message message;
    message.role = Role::kSystem;
    message.content = text;
    conversation_.messages.insert(conversation_.messages.begin(), message);
  }

  Result<ChatEnd> Say(const std::string& text, const Show& show,
                      const std::atomic<bool>& interrupted) override {
    Message user;
    user.content = text;
    conversation_.messages.push_back(user);
    HEARTH_ASSIGN(const std::vector<Token> prompt,
                  format_->Render(conversation_, {.date = options_.date}));
    if (static_cast<int>(prompt.size()) >= context_) {
      return Error(Code::kInvalid, "the conversation has %zu tokens, the context holds %d",
                   prompt.size(), context_);
    }
    Message reply;
    reply.role = Role::kAssistant;
    HEARTH_ASSIGN(const ChatEnd end, Generate(prompt, show, interrupted, reply));
    conversation_.messages.push_back(reply);
    return end;
  }

 private:
  Result<ChatEnd> Generate(const std::vector<Token>& prompt, const Show& show,
                           const std::atomic<bool>& interrupted, Message& reply) {
    const std::unique_ptr<ReplyReader> reader = format_->NewReader();
    std::vector<ReplyEvent> events;
    const int left = context_ - static_cast<int>(prompt.size());
    Result<ChatEnd> end = speaker_->Speak(
        prompt, params_, std::min(options_.max_tokens, left),
        [&](Token token) {
          reader->Feed(token, events);
          Deliver(events, show, reply);
        },
        interrupted);
    ++params_.seed;  // the next turn must not repeat this one's draws
    if (!end.ok()) return end;
    reader->Finish(events);
    Deliver(events, show, reply);
    std::string rest;
    utf8_.Finish(rest);
    show(last_kind_, rest);
    return *end == ChatEnd::kLength && left < options_.max_tokens ? ChatEnd::kContext : *end;
  }

  // Shows whole characters, and keeps the reply for the next turn.
  void Deliver(std::vector<ReplyEvent>& events, const Show& show, Message& reply) {
    for (const ReplyEvent& event : events) {
      if (event.kind != last_kind_) {
        std::string rest;
        utf8_.Finish(rest);
        show(last_kind_, rest);
        last_kind_ = event.kind;
      }
      switch (event.kind) {
        case ReplyEvent::Kind::kReasoning:
          reply.reasoning += event.text;
          break;
        case ReplyEvent::Kind::kContent:
          reply.content += event.text;
          break;
        case ReplyEvent::Kind::kToolCall:
          reply.tool_calls.push_back({"", event.text, ""});
          break;
        case ReplyEvent::Kind::kToolArguments:
          reply.tool_calls.back().arguments += event.text;
          break;
        case ReplyEvent::Kind::kToolCallEnd:
          break;
      }
      const bool is_whole =
          event.kind == ReplyEvent::Kind::kToolCall || event.kind == ReplyEvent::Kind::kToolCallEnd;
      std::string text;
      if (!is_whole) utf8_.Append(event.text, text);
      show(event.kind, is_whole ? event.text : text);
    }
    events.clear();
  }

  const ChatOptions options_;
  const Model model_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  const std::unique_ptr<ChatFormat> format_;
  std::unique_ptr<Speaker> speaker_;
  SamplingParams params_;
  Conversation conversation_;
  Utf8Stream utf8_;
  ReplyEvent::Kind last_kind_ = ReplyEvent::Kind::kContent;
  int context_ = 0;
};

}  // namespace

Result<std::unique_ptr<Chat>> Chat::Open(const ChatOptions& options) {
  HEARTH_ASSIGN(Model model, OpenModelFor(options.model, options.backend));
  HEARTH_ASSIGN(std::unique_ptr<Tokenizer> tokenizer, OpenTokenizer(options.model));
  if (tokenizer->vocab_size() > model.spec.vocab_size) {
    return Error(Code::kCorrupt, "%s: a vocabulary of %d tokens, the model has room for %d",
                 options.model.c_str(), tokenizer->vocab_size(), model.spec.vocab_size);
  }
  HEARTH_ASSIGN(std::unique_ptr<ChatFormat> format, OpenChatFormat(options.model, "", *tokenizer));
  auto chat = std::make_unique<LocalChat>(options, std::move(model), std::move(tokenizer),
                                          std::move(format));
  HEARTH_TRY(chat->Start());
  return std::unique_ptr<Chat>(std::move(chat));
}

}  // namespace hearth
