// SPDX-License-Identifier: Apache-2.0
#include "text/harmony_parse.h"

namespace hearth {
namespace {

bool IsBlank(std::string_view bytes) {
  return bytes.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

void AppendContent(std::string_view bytes, std::vector<HarmonyEvent>& out) {
  if (bytes.empty()) return;
  if (out.empty() || out.back().kind != HarmonyEvent::Kind::kContent) {
    out.push_back({.kind = HarmonyEvent::Kind::kContent});
  }
  out.back().bytes += bytes;
}

}  // namespace

HarmonyParser::HarmonyParser(const Tokenizer& tokenizer, const HarmonyTokens& tokens)
    : tokenizer_(tokenizer), tokens_(tokens) {
  header_.Clear(/*is_role_known=*/true);
}

HarmonyParser::Kind HarmonyParser::Classify(Token token, HarmonyEnd& end) const {
  if (token < 0 || token >= tokenizer_.vocab_size()) return Kind::kUnknown;
  if (!tokenizer_.IsSpecial(token)) return Kind::kText;
  if (token == tokens_.start) return Kind::kStart;
  if (token == tokens_.message) return Kind::kMessage;
  if (token == tokens_.channel) return Kind::kChannel;
  if (token == tokens_.constrain) return Kind::kConstrain;
  if (token == tokens_.end_of_text) return Kind::kEndOfText;
  if (token != tokens_.end && token != tokens_.call && token != tokens_.finish) {
    return Kind::kUnknown;
  }
  end = token == tokens_.end    ? HarmonyEnd::kEnd
        : token == tokens_.call ? HarmonyEnd::kCall
                                : HarmonyEnd::kReturn;
  return Kind::kEnd;
}

void HarmonyParser::Feed(std::span<const Token> tokens, std::vector<HarmonyEvent>& out) {
  for (const Token token : tokens) Feed(token, out);
}

void HarmonyParser::Feed(Token token, std::vector<HarmonyEvent>& out) {
  HarmonyEnd end = HarmonyEnd::kCutOff;
  const Kind kind = Classify(token, end);
  if (kind == Kind::kUnknown) return Drop();
  const std::string_view bytes = kind == Kind::kText ? tokenizer_.Bytes(token) : std::string_view();
  switch (state_) {
    case State::kHeader:
      return InHeader(kind, bytes, end, out);
    case State::kContent:
      return InContent(kind, bytes, end, out);
    case State::kBetween:
      return Between(kind, bytes, out);
  }
}

void HarmonyParser::Finish(std::vector<HarmonyEvent>& out) {
  if (state_ == State::kHeader && OpenMessage(/*is_complete=*/false, out)) {
    CloseMessage(HarmonyEnd::kCutOff, out);
  } else if (state_ == State::kContent) {
    CloseMessage(HarmonyEnd::kCutOff, out);
  }
  state_ = State::kBetween;
}

void HarmonyParser::Drop() {
  ++repairs_.stray_tokens;
  ++counts_.repaired_tokens;
}

void HarmonyParser::BeginHeader(bool is_role_known) {
  header_.Clear(is_role_known);
  state_ = State::kHeader;
}

void HarmonyParser::CloseMessage(HarmonyEnd end, std::vector<HarmonyEvent>& out) {
  out.push_back({.kind = HarmonyEvent::Kind::kEnd, .end = end});
  state_ = State::kBetween;
}

// Reads the header and begins its message. Without <|message|> there may be none to begin: then
// the header's tokens are left out and the answer is false.
bool HarmonyParser::OpenMessage(bool is_complete, std::vector<HarmonyEvent>& out) {
  HeaderText::Reading reading = header_.Read(is_complete, repairs_);
  const bool has_message = is_complete || reading.says_something;
  if (!is_complete && !header_.empty()) ++repairs_.missing_messages;
  if (has_message) {
    counts_.header_tokens += reading.header_tokens;
    counts_.content_tokens += reading.content_tokens;
    counts_.repaired_tokens += reading.dropped_tokens;
    out.push_back({.kind = HarmonyEvent::Kind::kStart, .header = std::move(reading.header)});
    AppendContent(reading.content, out);
  } else {
    counts_.repaired_tokens += header_.num_tokens();
  }
  header_.Clear(/*is_role_known=*/true);
  return has_message;
}

void HarmonyParser::InHeader(Kind kind, std::string_view bytes, HarmonyEnd end,
                             std::vector<HarmonyEvent>& out) {
  switch (kind) {
    case Kind::kText:
      header_.Add(HeaderText::Kind::kText, bytes);
      break;
    case Kind::kChannel:
      header_.Add(HeaderText::Kind::kChannel, {});
      break;
    case Kind::kConstrain:
      header_.Add(HeaderText::Kind::kConstrain, {});
      break;
    case Kind::kMessage:
      OpenMessage(/*is_complete=*/true, out);
      ++counts_.header_tokens;
      state_ = State::kContent;
      return;
    case Kind::kStart:
      if (OpenMessage(/*is_complete=*/false, out)) CloseMessage(HarmonyEnd::kCutOff, out);
      BeginHeader(/*is_role_known=*/false);
      header_.Add(HeaderText::Kind::kStart, {});
      return;
    case Kind::kEnd:
    case Kind::kEndOfText:
      if (OpenMessage(/*is_complete=*/false, out)) {
        CloseMessage(end, out);
        ++counts_.header_tokens;
      } else {
        Drop();
      }
      state_ = State::kBetween;
      return;
    case Kind::kUnknown:
      return;
  }
  if (!header_.is_full()) return;
  // Too long for a header: from here on it is content, so that memory and waiting are bounded.
  if (OpenMessage(/*is_complete=*/false, out)) state_ = State::kContent;
}

void HarmonyParser::InContent(Kind kind, std::string_view bytes, HarmonyEnd end,
                              std::vector<HarmonyEvent>& out) {
  switch (kind) {
    case Kind::kText:
      AppendContent(bytes, out);
      ++counts_.content_tokens;
      break;
    case Kind::kEnd:
      CloseMessage(end, out);
      ++counts_.header_tokens;
      break;
    case Kind::kEndOfText:
      ++repairs_.missing_ends;
      CloseMessage(HarmonyEnd::kCutOff, out);
      ++counts_.repaired_tokens;
      break;
    case Kind::kStart:
    case Kind::kChannel:  // a channel opens a header even when start and author were forgotten
      ++repairs_.missing_ends;
      CloseMessage(HarmonyEnd::kCutOff, out);
      Between(kind, bytes, out);
      break;
    default:
      Drop();
  }
}

void HarmonyParser::Between(Kind kind, std::string_view bytes, std::vector<HarmonyEvent>& out) {
  switch (kind) {
    case Kind::kStart:
      BeginHeader(/*is_role_known=*/false);
      header_.Add(HeaderText::Kind::kStart, {});
      return;
    case Kind::kText:
      if (IsBlank(bytes)) return Drop();
      [[fallthrough]];
    case Kind::kChannel:
    case Kind::kMessage:
    case Kind::kConstrain:
      ++repairs_.missing_starts;
      BeginHeader(/*is_role_known=*/true);
      return InHeader(kind, bytes, HarmonyEnd::kCutOff, out);
    default:
      Drop();
  }
}

}  // namespace hearth
