// SPDX-License-Identifier: Apache-2.0
// How a reply looks while it comes: Markdown, reasoning in the way the reader wants it, tool calls
// by name, and nothing that commands the terminal but what we wrote ourselves.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "talk/answerer.h"
#include "talk/markdown.h"
namespace hearth {

// What the place that a reply goes to can show.
struct ViewKind {
  bool is_terminal = false;   // control characters in a reply are made harmless
  bool has_styles = false;    // colours, bold, Markdown
  bool moves_cursor = false;  // a line that is written again and again
};

// Thread: one.
class ReplyView {
 public:
  using Write = std::function<void(std::string_view bytes)>;
  using Clock = std::function<double()>;  // seconds
  using Columns = std::function<int()>;   // of the terminal, now
  ReplyView(ViewKind kind, Write write, Clock clock, Columns columns);

  // A reply begins, and nothing of it is there yet.
  void Begin(ReasoningView reasoning);
  void Hear(ReplyEvent::Kind kind, const std::string& text);
  // Nothing came for a moment: says so when it lasts.
  void Wait();
  // The reply is over, whole or not: ends its line.
  void End();

 private:
  void Put(std::string_view bytes);
  void PutStatus(const std::string& text);
  void ClearStatus();
  void HearReasoning(const std::string& text);
  void EndReasoning();
  void HearContent(const std::string& text);
  std::string Safe(const std::string& text) const;
  std::string Dim(std::string_view text) const;

  const ViewKind kind_;
  const Write write_;
  const Clock clock_;
  const Columns columns_;
  ReasoningView reasoning_ = ReasoningView::kFold;
  MarkdownStream markdown_;
  double began_s_ = 0, thinking_since_s_ = 0;
  bool has_status_ = false, heard_ = false, wrote_ = false, is_thinking_ = false;
  char last_ = '\n';      // the last byte written
  std::string status_;    // the line that is written again, as it was written last
  std::string thoughts_;  // of this reply
};

// "thought for 3.2 s, 85 words"
std::string ThoughtSummary(double seconds, std::string_view thoughts);
// "57 tokens, 41.2 tokens/s, first after 0.21 s, 123 of 180 prompt tokens cached"
std::string FiguresLine(const TurnFigures& figures);

}  // namespace hearth
