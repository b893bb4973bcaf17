// SPDX-License-Identifier: Apache-2.0
// What a sequence will probably say next, looked up where it said the same before: a quotation, a
// repeated piece of code, a list's next row. Pure; never wrong, only unhelpful: drafts are checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
namespace hearth {

inline constexpr int kMaxDraft = 15;  // tokens: with the one that is due, a block's worth

// The match of a draft that the prefix cache had: all tokens agreed, from the first on.
inline constexpr int kContextMatch = 1 << 20;

// An earlier place whose tokens up to there are those the sequence ends in.
struct SuffixMatch {
  int length = 0;  // how many tokens agree, at most SuffixIndex::kMaxLength; 0: nothing found
  int next = 0;    // the position after the earlier place: the draft starts with its token
};

// Where the pairs of tokens of one sequence occurred. The tokens stay the caller's and only grow;
// every call gets all of them. At most 0.5 MiB, whatever the sequence; constant time per token.
// Thread: one at a time.
class SuffixIndex {
 public:
  static constexpr int kMinLength = 2, kMaxLength = 32;
  static constexpr int kMaxTries = 32;       // earlier places looked at, the latest ones
  static constexpr int kMaxWindow = 65'536;  // how far back they may lie

  // Takes in what is new at the end of `tokens`.
  void Extend(std::span<const Token> tokens);
  // The place with the longest match, of equals the latest. `tokens` as of the last Extend.
  SuffixMatch Find(std::span<const Token> tokens) const;

 private:
  void Insert(std::span<const Token> tokens, int position);
  void Grow(std::span<const Token> tokens, size_t slots);
  size_t SlotOf(std::span<const Token> tokens, int position) const;

  int num_inserted_ = 0;         // positions below this one are in the index
  std::vector<int32_t> latest_;  // by hash of a pair: the last position it ended at; -1: none
  std::vector<int32_t> before_;  // by position, a ring: the one before with the same hash
};

// Writes what followed the match, `count` tokens; where it runs into the sequence's end it goes
// round: "a b a b" continues with "a b a b".
void CopyDraft(std::span<const Token> tokens, const SuffixMatch& match, int count,
               std::vector<Token>& draft);

}  // namespace hearth
