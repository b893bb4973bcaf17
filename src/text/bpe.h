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
  MergeTable() = default;
  // Every cut (AppendCuts); the rank is the token itself.
  static Result<MergeTable> FromRanks(const VocabTable& vocab);
  // In order of rank; a pair that stands twice is refused.
  static Result<MergeTable> FromMerges(std::span<const Merge> merges);
  // With ranks of their own, which may be equal: then the leftmost pair goes first.
  static Result<MergeTable> FromMerges(std::span<const Merge> merges,
                                       std::span<const uint32_t> ranks);

  Joined Find(Token left, Token right) const {
    const uint64_t key = KeyOf(left, right);
    for (size_t i = Home(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].joined;
      if (slots_[i].key == kFree) return {};
    }
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  struct Slot {
    uint64_t key = kFree;
    Joined joined;
  };
  static uint64_t KeyOf(Token left, Token right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
           static_cast<uint32_t>(right);
  }
  size_t Home(uint64_t key) const {
    const uint64_t mixed = (key ^ (key >> 29)) * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>((mixed ^ (mixed >> 32)) * 0xc2b2ae3d27d4eb4fu >> shift_);
  }
  void Reserve(size_t count);
  Status Insert(Token left, Token right, Joined joined);

  std::vector<Slot> slots_;  // a power of two, at most half full
  int shift_ = 63;
};

// The merging of one sequence of tokens of any length. Start, Add them, Run, then walk what is
// left. Holds memory between uses. Thread: one at a time.
class MergeHeap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  explicit MergeHeap(const MergeTable& merges) : merges_(merges) {}
  void Start();
  void Add(Token token);  // kNoToken stands for something that never merges
  void Run();
  // What is left, in order: indices of the tokens added, each where its part begins.
  uint32_t first() const { return parts_.empty() ? kNone : 0; }
  uint32_t next(uint32_t index) const { return parts_[index].next; }
  Token token(uint32_t index) const { return parts_[index].token; }

 private:
  struct Part {
    Token token;
    uint32_t previous, next;  // indices or kNone
    Joined joined;            // with the next part; a part that is gone never joins
  };
  void Rejoin(uint32_t index);
  const MergeTable& merges_;
  std::vector<Part> parts_;
  std::vector<uint64_t> heap_;  // rank << 32 | index, smallest on top; stale ones are skipped
};

// Appends the tokens of pieces. Holds scratch memory, so: one per thread, cheap to make.
class BpeMerger {
 public:
  // `byte_tokens` are the tokens of the 256 single bytes; kNoToken: such a byte is left out.
  // `byte_pairs` [256 * 256] is what two single bytes become.
  BpeMerger(const MergeTable& merges, std::span<const Token> byte_tokens,
            std::span<const Joined> byte_pairs)
      : merges_(merges), byte_tokens_(byte_tokens), byte_pairs_(byte_pairs), heap_(merges) {}
  void Append(std::string_view piece, std::vector<Token>& out);

 private:
  void AppendShort(std::string_view piece, std::vector<Token>& out);
  void AppendLong(std::string_view piece, std::vector<Token>& out);
  const MergeTable& merges_;
  std::span<const Token> byte_tokens_;
  std::span<const Joined> byte_pairs_;
  MergeHeap heap_;
};

}  // namespace hearth
