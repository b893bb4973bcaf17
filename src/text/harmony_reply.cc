// SPDX-License-Identifier: Apache-2.0
// Harmony behind the ChatFormat seam: which messages are reasoning, answer or tool call.
#include "text/harmony.h"
#include "text/harmony_parse.h"

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;
constexpr std::string_view kFunctions = "functions.";

class HarmonyReader : public ReplyReader {
 public:
  HarmonyReader(const Tokenizer& tokenizer, const HarmonyTokens& tokens)
      : parser_(tokenizer, tokens) {}

  void Feed(Token token, std::vector<ReplyEvent>& out) override {
    parser_.Feed(token, events_);
    Translate(out);
  }
  void Finish(std::vector<ReplyEvent>& out) override {
    parser_.Finish(events_);
    Translate(out);
  }

 private:
  void Translate(std::vector<ReplyEvent>& out) {
    for (HarmonyEvent& event : events_) {
      switch (event.kind) {
        case HarmonyEvent::Kind::kStart:
          Start(event.header, out);
          break;
        case HarmonyEvent::Kind::kContent:
          if (is_shown_) out.push_back({kind_, std::move(event.bytes)});
          break;
        case HarmonyEvent::Kind::kEnd:
          if (kind_ == Kind::kToolArguments) out.push_back({Kind::kToolCallEnd, {}});
          kind_ = Kind::kContent;
          break;
      }
    }
    events_.clear();
  }

  void Start(const HarmonyHeader& header, std::vector<ReplyEvent>& out) {
    // What the model wrote in the name of others (a tool's result, the user) is not its reply.
    is_shown_ = header.role == Role::kAssistant;
    kind_ = header.channel == HarmonyChannel::kAnalysis ? Kind::kReasoning : Kind::kContent;
    if (!is_shown_ || header.recipient.empty() || header.recipient == "assistant" ||
        header.recipient == "user" || header.recipient == "all") {
      return;
    }
    std::string_view name = header.recipient;
    const bool is_function = name.starts_with(kFunctions) && name.size() > kFunctions.size();
    if (is_function) name.remove_prefix(kFunctions.size());
    // On the analysis channel only built-in tools are called, which nobody here offers: such a
    // call is one more thought. Elsewhere a missing "functions." is a slip.
    if (!is_function && kind_ == Kind::kReasoning) return;
    kind_ = Kind::kToolArguments;
    out.push_back({Kind::kToolCall, std::string(name)});
  }

  HarmonyParser parser_;
  std::vector<HarmonyEvent> events_;
  Kind kind_ = Kind::kContent;
  bool is_shown_ = true;
};

class HarmonyFormat : public ChatFormat {
 public:
  HarmonyFormat(const Tokenizer& tokenizer, const HarmonyTokens& tokens)
      : tokenizer_(tokenizer),
        tokens_(tokens),
        stop_tokens_{tokens.finish, tokens.call, tokens.end_of_text} {}

  Result<std::vector<Token>> Render(const Conversation& conversation,
                                    const RenderOptions& options) const override {
    HarmonyOptions harmony;
    harmony.date = options.date;
    harmony.keeps_finished_reasoning = options.keeps_finished_reasoning;
    harmony.answer = options.answer;
    return RenderHarmony(conversation, harmony, tokenizer_);
  }
  const std::vector<Token>& stop_tokens() const override { return stop_tokens_; }
  bool has_reasoning_effort() const override { return true; }
  std::unique_ptr<ReplyReader> NewReader() const override {
    return std::make_unique<HarmonyReader>(tokenizer_, tokens_);
  }
  ReplyStart StartOf(const Conversation& conversation, std::span<const Token>) const override {
    if (!conversation.continues_last) return {};
    ReplyStart start{.begins_in_answer = true, .said = AnswerHeader()};
    tokenizer_.Encode(conversation.messages.back().content, start.said);
    return start;
  }
  std::unique_ptr<ReplyReader> NewReaderAt(const ReplyStart& start) const override {
    std::unique_ptr<ReplyReader> reader = NewReader();
    std::vector<ReplyEvent> nothing;
    if (start.begins_in_answer) {
      for (const Token token : AnswerHeader()) reader->Feed(token, nothing);
    }
    return reader;
  }

 private:
  // What stands between `<|start|>assistant` and an answer's text.
  std::vector<Token> AnswerHeader() const {
    std::vector<Token> header{tokens_.channel};
    tokenizer_.Encode("final", header);
    header.push_back(tokens_.message);
    return header;
  }

  const Tokenizer& tokenizer_;
  const HarmonyTokens tokens_;
  const std::vector<Token> stop_tokens_;
};

}  // namespace

Result<std::unique_ptr<ChatFormat>> MakeHarmonyFormat(const Tokenizer& tokenizer) {
  HEARTH_ASSIGN(const HarmonyTokens tokens, HarmonyTokens::Find(tokenizer));
  return std::unique_ptr<ChatFormat>(std::make_unique<HarmonyFormat>(tokenizer, tokens));
}

}  // namespace hearth
