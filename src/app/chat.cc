// SPDX-License-Identifier: Apache-2.0
#include "app/chat.h"

#include <algorithm>

#include "app/open_format.h"
#include "app/open_model.h"
#include "app/open_tokenizer.h"
#include "engine/sampler.h"
#include "model/reference.h"
#include "text/utf8_stream.h"

namespace hearth {
namespace {

constexpr int kPromptChunk = 256;
constexpr int kUsualContext = 16384;

// What a chat needs of a backend: append tokens, get the last logits, go back.
class Generator {
 public:
  virtual ~Generator() = default;
  virtual Result<std::vector<float>> Append(std::span<const Token> tokens) = 0;
  // Forgets everything after the first `count` tokens; says how many are really kept.
  virtual int Rewind(int count) = 0;
};

class CpuGenerator : public Generator {
 public:
  explicit CpuGenerator(LoneSequence sequence) : sequence_(std::move(sequence)) {}
  Result<std::vector<float>> Append(std::span<const Token> tokens) override {
    std::vector<float> last;
    HEARTH_TRY(sequence_.Append(tokens, kPromptChunk, false, [&](std::span<const float> logits) {
      last.assign(logits.begin(), logits.end());
    }));
    return last;
  }
  int Rewind(int count) override { return sequence_.Rewind(count); }

 private:
  LoneSequence sequence_;
};

class ReferenceGenerator : public Generator {
 public:
  explicit ReferenceGenerator(const Model& model) : model_(model) { reference_.emplace(model); }
  Result<std::vector<float>> Append(std::span<const Token> tokens) override {
    std::vector<float> last;
    HEARTH_TRY(reference_->Append(
        tokens, Reference::Wanted::kLastRow,
        [&](int, std::span<const double> logits) { last.assign(logits.begin(), logits.end()); }));
    return last;
  }
  int Rewind(int count) override {
    if (count == reference_->num_computed()) return count;
    reference_.emplace(model_);
    return 0;
  }

 private:
  const Model& model_;
  std::optional<Reference> reference_;
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
  }

  Status Start() {
    HEARTH_TRY(Validate(params_, model_.spec.vocab_size));  // a flag's range lets NaN through
    const int wanted = options_.context > 0 ? options_.context : kUsualContext;
    context_ = std::min(model_.spec.max_context, wanted);
    if (options_.backend == "reference") {
      generator_ = std::make_unique<ReferenceGenerator>(model_);
      return Status();
    }
    HEARTH_ASSIGN(LoneSequence sequence, LoneSequence::Make(model_, options_.cpu, context_));
    generator_ = std::make_unique<CpuGenerator>(std::move(sequence));
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
    HEARTH_ASSIGN(std::vector<float> logits, Compute(prompt));
    Message reply;
    reply.role = Role::kAssistant;
    HEARTH_ASSIGN(const ChatEnd end, Generate(std::move(logits), show, interrupted, reply));
    conversation_.messages.push_back(reply);
    return end;
  }

 private:
  // Computes what the sequence does not already hold of `prompt`.
  Result<std::vector<float>> Compute(const std::vector<Token>& prompt) {
    const size_t limit = std::min(prompt.size() - 1, computed_.size());
    const auto differs = std::mismatch(
        computed_.begin(), computed_.begin() + static_cast<std::ptrdiff_t>(limit), prompt.begin());
    const int kept = generator_->Rewind(static_cast<int>(differs.first - computed_.begin()));
    computed_ = prompt;
    return generator_->Append(std::span(prompt).subspan(static_cast<size_t>(kept)));
  }

  Result<ChatEnd> Generate(std::vector<float> logits, const Show& show,
                           const std::atomic<bool>& interrupted, Message& reply) {
    const std::unique_ptr<ReplyReader> reader = format_->NewReader();
    const std::vector<Token>& stops = format_->stop_tokens();
    ChatEnd end = ChatEnd::kLength;
    std::vector<ReplyEvent> events;
    for (int i = 0; i < options_.max_tokens; ++i) {
      const Token token =
          sampler_.Choose(logits, params_, SamplerState::WithoutPast(num_sampled_++));
      if (token < 0) return Error(Code::kCorrupt, "the model computed no numbers (NaN logits)");
      reader->Feed(token, events);
      Deliver(events, show, reply);
      const bool stops_here = std::find(stops.begin(), stops.end(), token) != stops.end();
      if (stops_here || interrupted) {
        end = stops_here ? ChatEnd::kStop : ChatEnd::kInterrupted;
        break;
      }
      if (static_cast<int>(computed_.size()) >= context_) {
        end = ChatEnd::kContext;
        break;
      }
      computed_.push_back(token);
      HEARTH_ASSIGN(logits, generator_->Append(std::span(&token, 1)));
    }
    reader->Finish(events);
    Deliver(events, show, reply);
    std::string rest;
    utf8_.Finish(rest);
    show(last_kind_, rest);
    return end;
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
  std::unique_ptr<Generator> generator_;
  SamplingParams params_;
  Sampler sampler_;
  Conversation conversation_;
  std::vector<Token> computed_;  // what the generator holds
  Utf8Stream utf8_;
  ReplyEvent::Kind last_kind_ = ReplyEvent::Kind::kContent;
  uint64_t num_sampled_ = 0;
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
