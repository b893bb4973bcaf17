// SPDX-License-Identifier: Apache-2.0
// Reads what a gpt-oss model writes: a state machine over tokens. Total: every sequence of tokens
// has a reading, wrong ones are repaired and counted, nothing throws.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/harmony.h"
#include "text/harmony_header.h"
namespace hearth {

enum class HarmonyEnd : unsigned char {
  kEnd,     // <|end|>: the message is over, the turn goes on
  kCall,    // <|call|>: the recipient should answer now
  kReturn,  // <|return|>: the turn is over
  kCutOff   // no end was written
};

// Events of one message: kStart, any number of kContent, kEnd. Messages do not overlap.
struct HarmonyEvent {
  enum class Kind : unsigned char { kStart, kContent, kEnd };
  Kind kind = Kind::kContent;
  HarmonyHeader header{};                // kStart
  std::string bytes{};                   // kContent; may end in half a code point
  HarmonyEnd end = HarmonyEnd::kCutOff;  // kEnd
  bool operator==(const HarmonyEvent&) const = default;
};

// Where the tokens went. After Finish() the three add up to the tokens fed.
struct HarmonyCounts {
  uint64_t header_tokens = 0;    // headers and ends of messages
  uint64_t content_tokens = 0;   // their bytes are in kContent events
  uint64_t repaired_tokens = 0;  // left out
  bool operator==(const HarmonyCounts&) const = default;
};

// Thread: one. Begins where the renderer ends, after `<|start|>assistant`. `tokenizer` must
// outlive it. Holds at most one header (HeaderText::kMaxBytes) at a time.
class HarmonyParser {
 public:
  HarmonyParser(const Tokenizer& tokenizer, const HarmonyTokens& tokens);
  // Append events. Content that goes on is added to the last event of `out`, so the same tokens
  // in one piece or in many give the same bytes, cut into events differently.
  void Feed(Token token, std::vector<HarmonyEvent>& out);
  void Feed(std::span<const Token> tokens, std::vector<HarmonyEvent>& out);
  // No more tokens: ends the message under way.
  void Finish(std::vector<HarmonyEvent>& out);

  const HarmonyCounts& counts() const { return counts_; }
  const HarmonyRepairs& repairs() const { return repairs_; }
  // Fed, but not counted yet: the header under way.
  size_t num_pending() const { return header_.num_tokens(); }

 private:
  enum class State : unsigned char { kHeader, kContent, kBetween };
  enum class Kind : unsigned char {
    kText,
    kStart,
    kMessage,
    kChannel,
    kConstrain,
    kEnd,
    kEndOfText,
    kUnknown
  };
  Kind Classify(Token token, HarmonyEnd& end) const;
  void InHeader(Kind kind, std::string_view bytes, HarmonyEnd end, std::vector<HarmonyEvent>& out);
  void InContent(Kind kind, std::string_view bytes, HarmonyEnd end, std::vector<HarmonyEvent>& out);
  void Between(Kind kind, std::string_view bytes, std::vector<HarmonyEvent>& out);
  void BeginHeader(bool is_role_known);
  bool OpenMessage(bool is_complete, std::vector<HarmonyEvent>& out);
  void CloseMessage(HarmonyEnd end, std::vector<HarmonyEvent>& out);
  void Drop();

  const Tokenizer& tokenizer_;
  const HarmonyTokens tokens_;
  State state_ = State::kHeader;
  HeaderText header_;
  HarmonyCounts counts_;
  HarmonyRepairs repairs_;
};

}  // namespace hearth
