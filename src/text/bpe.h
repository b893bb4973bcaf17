// SPDX-License-Identifier: Apache-2.0
// Byte-pair merging of one piece: again and again the neighbours with the lowest rank become one
// token, leftmost first among equals. O(n log n) for any piece, no recursion.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/vocab.h"
#include "text/vocab_table.h"
namespace hearth {

// What two neighbouring tokens become. Lower ranks go first.
struct Joined {
  uint32_t rank = UINT32_MAX;  // UINT32_MAX: they never join
  Token token = kNoToken;
};

// Appends every way to cut a findable token into two findable tokens.
void AppendCuts(const VocabTable& vocab, std::vector<Merge>& merges);

// (left, right) -> Joined, open-addressed. Thread: immutable.
class MergeTable {
 public:
  // Tokens and merges are below these, so that a slot fits into eight bytes: large vocabularies
  // make a million slots, and every one looked up is a cache line.
  static constexpr uint32_t kMaxTokens = (1u << 21) - 1;
  static constexpr uint32_t kMaxMerges = 1u << 22;

  MergeTable() = default;
  // Every cut (AppendCuts); the rank is the token itself.
  static Result<MergeTable> FromRanks(const VocabTable& vocab);
  // In order of rank; a pair that stands twice is refused.
  static Result<MergeTable> FromMerges(std::span<const Merge> merges);
  // With a rank for every token that merges make; ranks may be equal: then the leftmost goes first.
  static Result<MergeTable> FromTokenRanks(std::span<const Merge> merges,
                                           std::vector<uint32_t> rank_of_token);

  Joined Find(Token left, Token right) const {
    const auto l = static_cast<uint32_t>(left), r = static_cast<uint32_t>(right);
    if ((l | r) < kNumDirect) return JoinedOf(direct_[l * kNumDirect + r]);
    if (l >= kMaxTokens || r >= kMaxTokens) return {};
    const uint64_t key = KeyOf(l, r);
    for (size_t i = Home(key);; i = (i + 1) & (slots_.size() - 1)) {
      const uint64_t found = slots_[i] ^ key;
      if (found < kMaxMerges) return JoinedOf(static_cast<uint32_t>(found));
      if (slots_[i] == kFree) return {};
    }
  }

 private:
  // left 21 bits, right 21 bits, value 22 bits. The largest token is none, so no slot is kFree.
  static constexpr uint64_t kFree = UINT64_MAX;
  static constexpr uint32_t kNoValue = UINT32_MAX;
  // Nearly all vocabularies begin with the tokens of the single bytes, where all merging begins.
  static constexpr uint32_t kNumDirect = 256;

  static uint64_t KeyOf(uint32_t left, uint32_t right) {
    return (static_cast<uint64_t>(left) << 43) | (static_cast<uint64_t>(right) << 22);
  }
  size_t Home(uint64_t key) const {
    const uint64_t mixed = key * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>((mixed ^ (mixed >> 32)) * 0xc2b2ae3d27d4eb4fu >> shift_);
  }
  Joined JoinedOf(uint32_t value) const {
    if (value == kNoValue) return {};
    return {ranks_.empty() ? value : ranks_[value],
            tokens_.empty() ? static_cast<Token>(value) : tokens_[value]};
  }
  Status Reserve(size_t count);
  Status Insert(const Merge& merge, uint32_t value);

  std::vector<uint64_t> slots_;   // a power of two, at most two thirds full
  std::vector<uint32_t> direct_;  // [256 * 256] values of pairs of small tokens, or kNoValue
  std::vector<uint32_t> ranks_;   // of a value; empty: the value itself
  std::vector<Token> tokens_;     // of a value; empty: the value itself
  int shift_ = 63;
};

// One token of the result: which of the symbols it begins with.
struct MergedPart {
  uint32_t begin = 0;
  Token token = kNoToken;
};

// Merges sequences of symbols (tokens of single bytes or characters). Holds memory between uses.
// Thread: one at a time.
class Merger {
 public:
  explicit Merger(const MergeTable& merges) : merges_(merges) {}
  // Appends what is left, in order. The symbol kNoToken never merges. `symbols` has fewer than
  // 2^32 - 1 elements.
  void Merge(std::span<const Token> symbols, std::vector<MergedPart>& out);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Part {
    Token token;
    uint32_t previous, next;  // indices or kNone
    Joined joined;            // with the next part; a part that is gone never joins
  };
  // All three give parts that begin at `begin` + their index in `symbols`.
  void MergeWhole(std::span<const Token> symbols, uint32_t begin, std::vector<MergedPart>& out);
  void MergeByScan(std::span<const Token> symbols, uint32_t begin, std::vector<MergedPart>& out);
  void MergeByHeap(std::span<const Token> symbols, uint32_t begin, std::vector<MergedPart>& out);
  bool MergeByWindows(std::span<const Token> symbols, std::vector<MergedPart>& out);
  bool StandApart(std::span<const Token> symbols, uint32_t begin, uint32_t middle, uint32_t end);
  void Rejoin(uint32_t index);

  const MergeTable& merges_;
  std::vector<Part> parts_;
  std::vector<uint64_t> heap_;  // rank << 32 | index, smallest on top; stale ones are skipped
  std::vector<MergedPart> window_, pair_;
};

}  // namespace hearth
