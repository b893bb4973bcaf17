// SPDX-License-Identifier: Apache-2.0
// A harmony message header: what the tokens between `<|start|>` and `<|message|>` say. Models
// write these themselves and get them wrong, so reading has no error: it has repairs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/conversation.h"
namespace hearth {

enum class HarmonyChannel : unsigned char { kNone, kAnalysis, kCommentary, kFinal };

struct HarmonyHeader {
  Role role = Role::kAssistant;
  std::string name;                                // of a tool, or of one participant among several
  HarmonyChannel channel = HarmonyChannel::kNone;  // an assistant's message always has one
  std::string recipient;                           // empty: everybody
  std::string content_type;                        // "json", "code", ...; empty: text
  bool is_constrained = false;                     // the type stood after <|constrain|>
  bool operator==(const HarmonyHeader&) const = default;
};

// What was wrong with a stream, by kind. Each is also one public bug report at least.
struct HarmonyRepairs {
  uint64_t unknown_words = 0;  // in a header, left out
  uint64_t missing_channels = 0;
  uint64_t odd_channels = 0;  // "commentary?", written twice, or without its control token
  uint64_t missing_starts = 0;
  uint64_t missing_messages = 0;  // a header that ran into an end or grew too long
  uint64_t missing_ends = 0;
  uint64_t stray_tokens = 0;  // control tokens where none belongs, ids outside the vocabulary
  bool operator==(const HarmonyRepairs&) const = default;
  uint64_t total() const {
    return unknown_words + missing_channels + odd_channels + missing_starts + missing_messages +
           missing_ends + stray_tokens;
  }
};

// The tokens of a header under way: their text, and where control tokens cut it.
// Memory is bounded: the caller stops at is_full().
class HeaderText {
 public:
  static constexpr size_t kMaxBytes = 384;   // a tool name of 256 bytes and all the rest
  static constexpr size_t kMaxTokens = 384;  // bytes may come one by one
  enum class Kind : unsigned char { kText, kStart, kChannel, kConstrain };

  // `is_role_known`: the author stood in the prompt, the text begins after it.
  void Clear(bool is_role_known);
  void Add(Kind kind, std::string_view bytes);
  bool empty() const { return tokens_.empty(); }
  bool is_full() const { return text_.size() > kMaxBytes || tokens_.size() > kMaxTokens; }
  size_t num_tokens() const { return tokens_.size(); }
  size_t num_bytes() const { return text_.size(); }

  struct Reading {
    HarmonyHeader header;
    bool says_something = false;  // an author alone is no message
    std::string_view content;     // without <|message|>: the text that cannot be header
    // Every token of the header is counted in exactly one of these.
    uint64_t header_tokens = 0, content_tokens = 0, dropped_tokens = 0;
  };
  // `is_complete`: <|message|> was seen, all text is header. Otherwise what follows the last word
  // that can be header is content. Valid until the next Clear() or Add().
  Reading Read(bool is_complete, HarmonyRepairs& repairs) const;

 private:
  struct Piece {
    Kind kind;
    uint32_t begin, end;  // its bytes in text_
  };
  struct Word;
  struct Words;
  Words Split() const;
  void CountTokens(const Words& words, Reading& reading) const;

  bool is_role_known_ = true;
  std::string text_;
  std::vector<Piece> tokens_;
};

}  // namespace hearth
