// SPDX-License-Identifier: Apache-2.0
// Tool calls and thoughts inside the text that models with a chat template write. Harmony has its
// own reader, over tokens.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_format.h"
namespace hearth {

enum class ToolCallStyle : unsigned char {
  kNone,    // all of it is the answer
  kChatMl,  // <tool_call>{"name": ..., "arguments": {...}}</tool_call>, anywhere in the reply
  kLlama3,  // the reply is {"name": ..., "parameters": {...}}, perhaps several, perhaps tagged
  kGeneric  // the reply is {"name": ..., "arguments": {...}}, perhaps several: plain_tools.h
};

// Which style a template asks its model for; kGeneric is never a template's.
ToolCallStyle ToolCallStyleOf(std::string_view template_source);

// Reads a reply piece by piece. Total: what is no well-formed call is content, byte for byte, its
// tags included. A reply may begin with <think>...</think>, which is reasoning. The events, joined
// where two of a kind follow each other, do not depend on how the text was cut into pieces. Spaces
// around thoughts and calls are layout and dropped.
// Thread: one.
class ToolCallParser {
 public:
  // A call longer than this is content: a model that runs away must not fill memory.
  static constexpr size_t kMaxCallBytes = size_t{1} << 20;

  // Where the first text that is fed belongs.
  enum class Begins : unsigned char { kReply, kInReasoning, kInAnswer };
  explicit ToolCallParser(ToolCallStyle style, Begins begins = Begins::kReply);
  void Feed(std::string_view text, std::vector<ReplyEvent>& out);
  void Finish(std::vector<ReplyEvent>& out);

 private:
  enum class State : unsigned char { kStart, kReasoning, kContent, kTagged, kObject, kBetween };

  // One transition on held_. False: more text is needed. `is_last`: none will come.
  bool Step(bool is_last, std::vector<ReplyEvent>& out);
  bool StepStart(bool is_last);
  bool StepReasoning(bool is_last, std::vector<ReplyEvent>& out);
  bool StepContent(bool is_last, std::vector<ReplyEvent>& out);
  bool StepTagged(bool is_last, std::vector<ReplyEvent>& out);
  bool StepObject(bool is_last, std::vector<ReplyEvent>& out);
  bool StepBetween(bool is_last);
  // The first `size` bytes of held_ are a call if `body` is one, or else content.
  bool TakeCall(std::string_view body, size_t size, std::vector<ReplyEvent>& out);
  void Drop(size_t size) { held_.erase(0, size); }
  void Enter(State state);

  ToolCallStyle style_;
  State state_;
  std::string held_;    // read but not yet decided
  std::string spaces_;  // content's trailing spaces: layout if a call or the end follows
  bool has_thought_ = false, has_call_ = false;
  bool drops_spaces_ = false;  // until the next solid text: those seen now are layout
  // Inside a call: how far held_ was looked at, and in what kind of place that is.
  size_t scanned_ = 0;
  int depth_ = 0;
  bool in_string_ = false, after_backslash_ = false;
};

}  // namespace hearth
