// SPDX-License-Identifier: Apache-2.0
#include "server/turns/turn.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

using Kind = ReplyEvent::Kind;

class PlainReader final : public ReplyReader {
 public:
  explicit PlainReader(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  void Feed(Token token, std::vector<ReplyEvent>& out) override {
    if (!tokenizer_.IsSpecial(token)) {
      out.push_back({Kind::kContent, std::string(tokenizer_.Bytes(token))});
    }
  }
  void Finish(std::vector<ReplyEvent>&) override {}

 private:
  const Tokenizer& tokenizer_;
};

bool Holds(const std::vector<ReplyEvent>& events, Kind kind) {
  return std::any_of(events.begin(), events.end(),
                     [kind](const ReplyEvent& event) { return event.kind == kind; });
}

AnswerLogprob Spelled(const Logprobs& logprobs, const Tokenizer& tokenizer) {
  const auto spell = [&](const TokenLogprob& one) {
    return SpelledLogprob{std::string(tokenizer.Bytes(one.token)), one.logprob, one.token};
  };
  AnswerLogprob out{spell(logprobs.chosen), {}, logprobs.rank};
  for (const TokenLogprob& one : logprobs.top) out.top.push_back(spell(one));
  return out;
}

}  // namespace

std::unique_ptr<ReplyReader> NewPlainReader(const Tokenizer& tokenizer) {
  return std::make_unique<PlainReader>(tokenizer);
}

Turn::Turn(std::unique_ptr<ReplyReader> reader, StopStrings stops, const Tokenizer& tokenizer)
    : reader_(std::move(reader)), stops_(std::move(stops)), tokenizer_(&tokenizer) {}

AnswerLogprob Turn::Spell(const Logprobs& logprobs) const { return Spelled(logprobs, *tokenizer_); }

void Turn::Feed(Token token, const Logprobs* logprobs, std::vector<Delta>& out) {
  if (is_stopped_) return;
  ++num_tokens_;
  reader_->Feed(token, events_);
  // Reasoning is counted by what a token made visible; the marks around it are not thoughts.
  num_reasoning_tokens_ += Holds(events_, Kind::kReasoning) ? 1 : 0;
  if (logprobs != nullptr && Holds(events_, Kind::kContent)) {
    logprobs_.push_back(Spelled(*logprobs, *tokenizer_));
  }
  Take(events_, out);
}

void Turn::Finish(std::vector<Delta>& out) {
  if (is_stopped_) return;
  reader_->Finish(events_);
  Take(events_, out);
  Flush(out);
}

void Turn::Take(std::vector<ReplyEvent>& events, std::vector<Delta>& out) {
  for (ReplyEvent& event : events) {
    if (is_stopped_) break;
    if (event.kind != kind_) Flush(out);
    kind_ = event.kind;
    if (kind_ == Kind::kToolCall) {
      out.push_back({kind_, std::move(event.text), num_calls_++});
    } else if (kind_ == Kind::kToolCallEnd) {
      out.push_back({kind_, "", num_calls_ - 1});
    } else {
      std::string text;
      utf8_.Append(event.text, text);
      Tell(std::move(text), out);
    }
  }
  events.clear();
}

// Another kind of text begins, or none follows: nothing is held back any longer.
void Turn::Flush(std::vector<Delta>& out) {
  std::string text;
  utf8_.Finish(text);
  Tell(std::move(text), out);
  if (kind_ != Kind::kContent || is_stopped_) return;
  std::string held;
  stops_.Finish(held);
  Put(std::move(held), out);
}

void Turn::Tell(std::string text, std::vector<Delta>& out) {
  if (kind_ == Kind::kContent && !text.empty()) {
    std::string shown;
    is_stopped_ = stops_.Append(text, shown);
    text = std::move(shown);
  }
  Put(std::move(text), out);
}

void Turn::Put(std::string text, std::vector<Delta>& out) {
  if (text.empty()) return;
  const int call = std::max(0, num_calls_ - 1);
  if (out.empty() || out.back().kind != kind_) out.push_back({kind_, "", call});
  Delta& delta = out.back();
  delta.text += text;
  if (kind_ != Kind::kContent) return;
  std::move(logprobs_.begin(), logprobs_.end(), std::back_inserter(delta.logprobs));
  logprobs_.clear();
}

}  // namespace hearth
