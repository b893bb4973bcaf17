// SPDX-License-Identifier: Apache-2.0
// Marks: how text out of a message stays recognisable inside a template's output.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"
namespace hearth {

// Each character of a message goes into the template as its twin, a code point in planes that
// Unicode leaves unassigned; the template's own text keeps its code points. In the output, twins
// are text, and only a run of unmarked characters can spell a special token. The engine looks at
// the plain side of twins (rust/hearth_templates/src/marks.rs) but gives back the twins, so a
// template may cut, join, reverse or re-case a message as it likes.
//
//   planes 0-3     +0x40000 -> planes 4-7       every assigned character but those below
//   planes 14-16   -0x60000 -> planes 8-10      tags, variation selectors, private use
//   planes 4-13    a pair in planes 11 and 12   unassigned; user text may hold them all the same
//   a broken byte  0xd0000 + byte               bytes that are not UTF-8

// Total: any bytes. Unmark(Mark(text)) is `text`.
std::string Mark(std::string_view text);
// Marks every string and every member's name below `value`.
Json MarkJson(const Json& value);
// The text that a template's output shows, marked or not.
std::string Unmark(std::string_view rendered);

// A stretch of a prompt: one special token, or text that is none.
struct PromptPiece {
  std::optional<Token> special;
  std::string text;  // of a special token: its spelling
};

// Tells the special tokens a template wrote from text. Thread: immutable once made.
class SpecialFinder {
 public:
  // Names made of letters, digits and ".+-" only are left out: numbers and booleans of a message
  // carry no marks, and must not be able to spell one.
  explicit SpecialFinder(const Tokenizer& tokenizer);
  // Text pieces are as long as possible: tokens may straddle the edge between a template's text
  // and a message's.
  std::vector<PromptPiece> Split(std::string_view rendered) const;

 private:
  struct Match {
    Token token;
    size_t num_bytes;
  };
  // The longest name at the start of `rest`, all of it unmarked.
  std::optional<Match> LongestAt(std::string_view rest) const;

  std::unordered_map<std::string, Token> tokens_;
  std::vector<size_t> name_bytes_;  // the lengths that occur, longest first
  std::vector<bool> first_bytes_;   // [256] can a name begin so
};

}  // namespace hearth
