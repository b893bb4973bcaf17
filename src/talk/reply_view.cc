// SPDX-License-Identifier: Apache-2.0
#include "talk/reply_view.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "base/terminal.h"
#include "talk/columns.h"

namespace hearth {
namespace {

// Sooner, and every reply would begin with a flicker.
constexpr double kQuietSeconds = 0.7;

int WordsIn(std::string_view text) {
  int words = 0;
  bool is_inside = false;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\t';
    if (!is_space && !is_inside) ++words;
    is_inside = !is_space;
  }
  return words;
}

std::string OneLine(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

}  // namespace

std::string ThoughtSummary(double seconds, std::string_view thoughts) {
  const int words = WordsIn(thoughts);
  return Printf("thought for %.1f s, %d %s", seconds, words, words == 1 ? "word" : "words");
}

std::string FiguresLine(const TurnFigures& figures) {
  std::string line =
      Printf("%d %s", figures.num_generated, figures.num_generated == 1 ? "token" : "tokens");
  const double after_first = figures.total_s - figures.first_token_s;
  if (figures.num_generated > 1 && after_first > 0) {
    line += Printf(", %.1f tokens/s", (figures.num_generated - 1) / after_first);
  }
  line += Printf(", first after %.2f s", figures.first_token_s);
  return line + Printf(", %d of %d prompt tokens cached", figures.num_cached, figures.num_prompt);
}

ReplyView::ReplyView(ViewKind kind, Write write, Clock clock, Columns columns)
    : kind_(kind),
      write_(std::move(write)),
      clock_(std::move(clock)),
      columns_(std::move(columns)) {}

void ReplyView::Begin(ReasoningView reasoning) {
  reasoning_ = reasoning;
  began_s_ = clock_();
  heard_ = wrote_ = is_thinking_ = false;
  last_ = '\n';
  thoughts_.clear();
}

void ReplyView::Put(std::string_view bytes) {
  if (bytes.empty()) return;
  ClearStatus();
  wrote_ = true;
  last_ = bytes.back();
  write_(bytes);
}

std::string ReplyView::Safe(const std::string& text) const {
  return kind_.is_terminal ? ForTerminal(text) : text;
}

std::string ReplyView::Dim(std::string_view text) const {
  return kind_.has_styles ? Styled(text, {.is_dim = true}) : std::string(text);
}

// One column stays free: a line that fills the terminal's width wraps on some of them.
void ReplyView::PutStatus(const std::string& text) {
  if (has_status_ && text == status_) return;
  status_ = text;
  write_("\r" + Dim(LastColumns(text, columns_() - 1)) + "\x1b[K");
  has_status_ = true;
}

void ReplyView::ClearStatus() {
  if (has_status_) write_("\r\x1b[K");
  has_status_ = false;
}

void ReplyView::Wait() {
  if (heard_ || !kind_.moves_cursor) return;
  const double waited = clock_() - began_s_;
  if (waited >= kQuietSeconds) PutStatus(Printf("reading the prompt, %.0f s", waited));
}

void ReplyView::HearReasoning(const std::string& text) {
  if (!is_thinking_) {
    is_thinking_ = true;
    thinking_since_s_ = clock_();
    thoughts_.clear();
    // Without styles nothing else would tell thoughts from the answer.
    if (reasoning_ == ReasoningView::kShow && !kind_.has_styles) Put("[thinking]\n");
  }
  thoughts_ += text;
  if (reasoning_ == ReasoningView::kShow) Put(Dim(Safe(text)));
  if (reasoning_ == ReasoningView::kFold && kind_.moves_cursor) {
    constexpr size_t kEnough = 1024;  // bytes: more than any terminal's columns that it gets
    size_t from = thoughts_.size() > kEnough ? thoughts_.size() - kEnough : 0;
    const auto is_inside = [&] { return (thoughts_[from] & 0xc0) == 0x80; };
    while (from > 0 && from < thoughts_.size() && is_inside()) ++from;  // a character
    const int room = std::max(columns_() - 12, 8);
    PutStatus("thinking: " + LastColumns(OneLine(Safe(thoughts_.substr(from))), room));
  }
}

void ReplyView::EndReasoning() {
  if (!is_thinking_) return;
  is_thinking_ = false;
  if (reasoning_ == ReasoningView::kHide) return;
  if (reasoning_ == ReasoningView::kFold) {
    const std::string summary = ThoughtSummary(clock_() - thinking_since_s_, thoughts_);
    Put(Dim("[" + summary + "]") + "\n");
    return;
  }
  Put(last_ == '\n' ? "\n" : "\n\n");
  if (!kind_.has_styles) Put("[answer]\n");
}

void ReplyView::HearContent(const std::string& text) {
  const std::string safe = Safe(text);
  Put(kind_.has_styles ? markdown_.Feed(safe) : safe);
}

void ReplyView::Hear(ReplyEvent::Kind kind, const std::string& text) {
  heard_ = true;
  switch (kind) {
    case ReplyEvent::Kind::kReasoning:
      if (!text.empty()) HearReasoning(text);
      return;
    case ReplyEvent::Kind::kContent:
      if (text.empty()) return;
      EndReasoning();
      return HearContent(text);
    case ReplyEvent::Kind::kToolCall:
      EndReasoning();
      Put(kind_.has_styles ? markdown_.Finish() : "");
      return Put((last_ == '\n' ? "[calls " : "\n[calls ") + Safe(text) + "] ");
    case ReplyEvent::Kind::kToolArguments:
      return Put(Safe(text));
    case ReplyEvent::Kind::kToolCallEnd:
      return Put("\n");
  }
}

void ReplyView::End() {
  EndReasoning();
  if (kind_.has_styles) Put(markdown_.Finish());
  ClearStatus();
  if (wrote_ && last_ != '\n') Put("\n");
}

}  // namespace hearth
