// SPDX-License-Identifier: Apache-2.0
// One state machine for all styles; calls are held back whole, everything else flows.
#include "text/tool_calls.h"

#include <algorithm>
#include <optional>

#include "base/json.h"

namespace hearth {
namespace {

constexpr std::string_view kThink = "<think>", kEndThink = "</think>";
constexpr std::string_view kCall = "<tool_call>", kEndCall = "</tool_call>";
constexpr std::string_view kPythonTag = "<|python_tag|>";
constexpr std::string_view kSpaces = " \t\r\n";

// How many bytes at the end of `text` could be the beginning of `mark`.
size_t BeginningAtEnd(std::string_view text, std::string_view mark) {
  for (size_t size = std::min(text.size(), mark.size() - 1); size > 0; --size) {
    if (text.substr(text.size() - size) == mark.substr(0, size)) return size;
  }
  return 0;
}

bool IsBeginningOf(std::string_view text, std::string_view mark) {
  return text.size() < mark.size() && mark.starts_with(text);
}

void Emit(ReplyEvent::Kind kind, std::string_view text, std::vector<ReplyEvent>& out) {
  if (!text.empty()) out.push_back({kind, std::string(text)});
}

// Where the value that begins at `begin` of valid JSON ends.
size_t EndOfValue(std::string_view json, size_t begin) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = begin; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
      return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return json.size();
}

// The text of the member `name` of a valid JSON object, as it was written.
std::string_view RawMember(std::string_view json, std::string_view name) {
  size_t at = json.find('{') + 1;
  while (at < json.size()) {
    at = json.find('"', at);
    if (at == std::string_view::npos) break;
    const size_t colon = [&] {
      size_t i = at + 1;
      while (json[i] != '"') i += json[i] == '\\' ? 2 : 1;
      return json.find(':', i);
    }();
    const size_t begin = json.find_first_not_of(kSpaces, colon + 1);
    const size_t end = EndOfValue(json, begin);
    if (json.substr(at + 1, name.size()) == name && json[at + 1 + name.size()] == '"') {
      const std::string_view value = json.substr(begin, end - begin);
      return value.substr(0, value.find_last_not_of(kSpaces) + 1);
    }
    at = end + 1;
  }
  return {};
}

struct Call {
  std::string name, arguments;
};

// Nothing when the text is no call. {"name": "Ann"} alone is one only inside call tags.
std::optional<Call> ParseCall(std::string_view body, bool is_tagged) {
  // The arguments are the tool's to judge. A recursive schema lets them nest deeper than a file's.
  auto json = ParseJson(body, {.max_depth = 256, .is_passed_on = true});
  if (!json.ok()) return std::nullopt;
  const Json* name = json->Find("name");
  if (name == nullptr || name->string() == nullptr || name->string()->empty()) return std::nullopt;
  for (const std::string_view key : {"arguments", "parameters"}) {
    const Json* arguments = json->Find(key);
    if (arguments == nullptr || arguments->is_null()) continue;
    // Some models write the object once more as a string.
    if (arguments->string() != nullptr) return Call{*name->string(), *arguments->string()};
    const std::string_view raw = RawMember(body, key);
    // A key spelled with escapes is not found raw.
    return Call{*name->string(), raw.empty() ? WriteJson(*arguments) : std::string(raw)};
  }
  if (!is_tagged) return std::nullopt;
  return Call{*name->string(), "{}"};
}

}  // namespace

ToolCallStyle ToolCallStyleOf(std::string_view template_source) {
  const auto has = [&](std::string_view part) {
    return template_source.find(part) != std::string_view::npos;
  };
  if (has(kCall)) return ToolCallStyle::kChatMl;
  const bool is_llama3 = has("<|start_header_id|>") && (has("\"parameters\"") || has(kPythonTag));
  return is_llama3 ? ToolCallStyle::kLlama3 : ToolCallStyle::kNone;
}

ToolCallParser::ToolCallParser(ToolCallStyle style, Begins begins)
    : style_(style),
      state_(begins == Begins::kInReasoning ? State::kReasoning
             : begins == Begins::kInAnswer  ? State::kContent
                                            : State::kStart) {}

void ToolCallParser::Feed(std::string_view text, std::vector<ReplyEvent>& out) {
  held_ += text;
  while (Step(false, out)) {
  }
}

void ToolCallParser::Finish(std::vector<ReplyEvent>& out) {
  while (Step(true, out)) {
  }
}

void ToolCallParser::Enter(State state) {
  state_ = state;
  scanned_ = 0;
  depth_ = 0;
  in_string_ = after_backslash_ = false;
}

bool ToolCallParser::Step(bool is_last, std::vector<ReplyEvent>& out) {
  switch (state_) {
    case State::kStart:
      return StepStart(is_last);
    case State::kReasoning:
      return StepReasoning(is_last, out);
    case State::kContent:
      return StepContent(is_last, out);
    case State::kTagged:
      return StepTagged(is_last, out);
    case State::kObject:
      return StepObject(is_last, out);
    case State::kBetween:
      return StepBetween(is_last);
  }
  return false;
}

bool ToolCallParser::StepStart(bool is_last) {
  const size_t begin = std::min(held_.find_first_not_of(kSpaces), held_.size());
  const std::string_view rest = std::string_view(held_).substr(begin);
  if (!is_last && (IsBeginningOf(rest, kThink) || IsBeginningOf(rest, kPythonTag))) return false;
  const bool is_llama3 = style_ == ToolCallStyle::kLlama3;
  const bool is_object = is_llama3 || style_ == ToolCallStyle::kGeneric;
  if (rest.starts_with(kThink) && !has_thought_) {
    Drop(begin + kThink.size());
    Enter(State::kReasoning);
  } else if (is_object && rest.starts_with('{')) {
    if (!drops_spaces_) spaces_ = held_.substr(0, begin);
    Drop(begin);
    Enter(State::kObject);
  } else if (is_llama3 && rest.starts_with(kPythonTag)) {
    Drop(begin + kPythonTag.size());
    Enter(State::kBetween);
  } else {
    Enter(State::kContent);
  }
  return true;
}

bool ToolCallParser::StepReasoning(bool is_last, std::vector<ReplyEvent>& out) {
  const size_t end = held_.find(kEndThink);
  const bool is_over = end != std::string::npos;
  const size_t keep = is_over ? held_.size() - end : is_last ? 0 : BeginningAtEnd(held_, kEndThink);
  std::string_view text = std::string_view(held_).substr(0, held_.size() - keep);
  // scanned_: whether a thought has begun; the spaces before it are layout.
  if (scanned_ == 0) text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  const size_t solid = text.find_last_not_of(kSpaces) + 1;
  if (solid > 0) {
    Emit(ReplyEvent::Kind::kReasoning, spaces_ + std::string(text.substr(0, solid)), out);
    spaces_.clear();
    scanned_ = 1;
  }
  if (scanned_ != 0) spaces_ += text.substr(solid);
  Drop(held_.size() - keep);
  if (!is_over) return false;
  Drop(kEndThink.size());
  spaces_.clear();
  has_thought_ = drops_spaces_ = true;
  Enter(State::kStart);
  return true;
}

bool ToolCallParser::StepContent(bool is_last, std::vector<ReplyEvent>& out) {
  const bool finds_calls = style_ == ToolCallStyle::kChatMl;
  const size_t call = finds_calls ? held_.find(kCall) : std::string::npos;
  size_t keep = 0;
  if (call != std::string::npos) {
    keep = held_.size() - call;
  } else if (finds_calls && !is_last) {
    keep = BeginningAtEnd(held_, kCall);
  }
  spaces_ += std::string_view(held_).substr(0, held_.size() - keep);
  Drop(held_.size() - keep);
  // spaces_ now holds all content not yet sent: solid text, and spaces that may be layout.
  if (drops_spaces_) {
    spaces_.erase(0, std::min(spaces_.find_first_not_of(kSpaces), spaces_.size()));
  }
  const size_t solid = spaces_.find_last_not_of(kSpaces) + 1;
  if (solid > 0) drops_spaces_ = false;
  Emit(ReplyEvent::Kind::kContent, std::string_view(spaces_).substr(0, solid), out);
  spaces_.erase(0, solid);
  if (call != std::string::npos) {
    Enter(State::kTagged);
    return true;
  }
  if (is_last && !has_call_) Emit(ReplyEvent::Kind::kContent, spaces_, out);
  if (is_last) spaces_.clear();
  return false;
}

bool ToolCallParser::TakeCall(std::string_view body, size_t size, std::vector<ReplyEvent>& out) {
  const auto call = ParseCall(body, state_ == State::kTagged);
  if (call) {
    Emit(ReplyEvent::Kind::kToolCall, call->name, out);
    Emit(ReplyEvent::Kind::kToolArguments, call->arguments, out);
    out.push_back({ReplyEvent::Kind::kToolCallEnd, ""});
    has_call_ = drops_spaces_ = true;
  } else {
    Emit(ReplyEvent::Kind::kContent, spaces_, out);
    Emit(ReplyEvent::Kind::kContent, std::string_view(held_).substr(0, size), out);
    drops_spaces_ = false;
  }
  spaces_.clear();
  Drop(size);
  return call.has_value();
}

bool ToolCallParser::StepTagged(bool is_last, std::vector<ReplyEvent>& out) {
  const size_t from = std::max(kCall.size(), scanned_ - std::min(scanned_, kEndCall.size()));
  size_t end = held_.find(kEndCall, from);
  scanned_ = held_.size();
  if (end == std::string::npos && !is_last && held_.size() < kMaxCallBytes + kEndCall.size()) {
    return false;
  }
  // Cut short by a length limit, a call without its end is still a call if it is whole.
  size_t size = end == std::string::npos ? held_.size() : end + kEndCall.size();
  end = std::min(end, held_.size());
  std::string body = held_.substr(kCall.size(), end - kCall.size());
  if (end > kMaxCallBytes) {
    body.clear();
    size = kMaxCallBytes;
  }
  TakeCall(body, size, out);
  Enter(State::kContent);
  return true;
}

bool ToolCallParser::StepObject(bool is_last, std::vector<ReplyEvent>& out) {
  while (scanned_ < std::min(held_.size(), kMaxCallBytes)) {
    const char c = held_[scanned_++];
    if (in_string_) {
      if (after_backslash_) {
        after_backslash_ = false;
      } else if (c == '\\') {
        after_backslash_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{') {
      ++depth_;
    } else if (c == '}' && --depth_ == 0) {
      const std::string body = held_.substr(0, scanned_);
      const bool was_call = TakeCall(body, body.size(), out);
      Enter(was_call ? State::kBetween : State::kContent);
      return true;
    }
  }
  if (!is_last && scanned_ < kMaxCallBytes) return false;
  Emit(ReplyEvent::Kind::kContent, spaces_, out);
  spaces_.clear();
  drops_spaces_ = false;
  Enter(State::kContent);
  return true;
}

bool ToolCallParser::StepBetween(bool is_last) {
  const size_t begin = std::min(held_.find_first_not_of(" \t\r\n;,"), held_.size());
  if (begin == held_.size() && !is_last) return false;
  Drop(begin);
  Enter(held_.starts_with('{') ? State::kObject : State::kContent);
  return true;
}

}  // namespace hearth
