// SPDX-License-Identifier: Apache-2.0
// What pieces became earlier in the same text. Words repeat; merging them again would give the
// same.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/ids.h"
namespace hearth {

// Direct-mapped; remembers where a piece stood and where its tokens are, nothing of its own.
// Thread: one at a time; lives no longer than the text and the vector it points into.
class PieceCache {
 public:
  // Texts too short to repeat themselves get a cache that holds nothing.
  explicit PieceCache(std::string_view text)
      : text_(text.data()), slots_(text.size() < kMinTextBytes ? 0 : kNumSlots) {}

  // Appends the tokens of `piece`, a part of the text: remembered ones, or what `merge(piece, out)`
  // appends, which is then remembered.
  template <class MergeFn>
  void Append(std::string_view piece, std::vector<Token>& out, const MergeFn& merge) {
    if (slots_.empty() || piece.size() > kMaxPieceBytes) return merge(piece, out);
    Slot& slot = slots_[SlotOf(piece)];
    const size_t begin = out.size();
    if (slot.num_bytes == piece.size() &&
        std::memcmp(text_ + slot.offset, piece.data(), piece.size()) == 0) {
      for (uint32_t i = 0; i < slot.num_tokens; ++i) out.push_back(out[slot.first + i]);
    } else {
      merge(piece, out);
      slot.offset = static_cast<size_t>(piece.data() - text_);
      slot.num_bytes = static_cast<uint16_t>(piece.size());
    }
    slot.first = begin;
    slot.num_tokens = static_cast<uint16_t>(out.size() - begin);
  }

 private:
  static constexpr size_t kMinTextBytes = 2048;
  static constexpr size_t kMaxPieceBytes = 256;
  static constexpr size_t kNumSlots = 2048;  // 48 KiB
  struct Slot {
    size_t offset = 0;       // of the piece in the text
    size_t first = 0;        // its first token in the vector
    uint16_t num_bytes = 0;  // 0: free
    uint16_t num_tokens = 0;
  };
  static size_t SlotOf(std::string_view piece) {
    uint64_t hash = piece.size();
    const char* p = piece.data();
    size_t left = piece.size();
    for (; left >= 8; left -= 8, p += 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
    uint64_t word = 0;
    for (size_t i = 0; i < left; ++i) word = (word << 8) | static_cast<uint8_t>(p[i]);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return static_cast<size_t>(hash >> 53);
  }
  static_assert(kNumSlots == size_t{1} << (64 - 53));

  const char* text_;
  std::vector<Slot> slots_;
};

}  // namespace hearth
