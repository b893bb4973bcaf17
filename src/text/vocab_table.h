// SPDX-License-Identifier: Apache-2.0
// Bytes -> token and token -> bytes, flat in memory: the lookup that most pieces of text end with.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
namespace hearth {

inline constexpr Token kNoToken = -1;

// Three open-addressed tables by length, so that a piece of up to 15 bytes is compared as one or
// two registers without touching its text. Thread: immutable.
class VocabTable {
 public:
  VocabTable() = default;
  // Every token is stored; those with `findable[i]` can be found by their bytes and must differ.
  static Result<VocabTable> Make(std::span<const std::string> tokens,
                                 std::span<const uint8_t> findable);
  int size() const { return static_cast<int>(offsets_.size()) - 1; }
  std::string_view Bytes(Token token) const {
    const auto i = static_cast<size_t>(token);
    return std::string_view(bytes_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  // kNoToken when there is none.
  Token Find(std::string_view bytes) const {
    if (bytes.size() <= 7) return FindShort(ShortKey(bytes));
    if (bytes.size() <= 15) return FindMiddle(MiddleKeyOf(bytes));
    return FindLong(bytes);
  }

 private:
  struct ShortSlot {
    uint64_t key = 0;  // up to 7 bytes and their number on top; never 0 for a token
    Token token = kNoToken;
  };
  struct MiddleKey {
    uint64_t low, high;  // 8 to 15 bytes and their number on top
    bool operator==(const MiddleKey&) const = default;
  };
  struct MiddleSlot {
    MiddleKey key = {0, 0};
    Token token = kNoToken;
  };
  struct LongSlot {
    uint32_t hash = 0;
    Token token = kNoToken;
  };

  template <class T>
  static uint64_t Load(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  static uint64_t ShortKey(std::string_view bytes) {
    const char* const p = bytes.data();
    const size_t size = bytes.size();
    uint64_t key = static_cast<uint64_t>(size) << 56;
    if (size >= 4) {
      key |= Load<uint32_t>(p) | (Load<uint32_t>(p + size - 4) << (8 * (size - 4)));
    } else if (size >= 2) {
      key |= Load<uint16_t>(p) | (Load<uint16_t>(p + size - 2) << (8 * (size - 2)));
    } else if (size == 1) {
      key |= Load<uint8_t>(p);
    }
    return key;
  }
  static MiddleKey MiddleKeyOf(std::string_view bytes) {
    const char* const p = bytes.data();
    const size_t size = bytes.size();
    const uint64_t tail = size == 8 ? 0 : Load<uint64_t>(p + size - 8) >> (8 * (16 - size));
    return {Load<uint64_t>(p), tail | (static_cast<uint64_t>(size) << 56)};
  }
  static size_t Slot(uint64_t key, int shift) {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> shift);
  }
  static uint64_t Mix(const MiddleKey& key) { return key.low ^ (key.high * 0xc2b2ae3d27d4eb4fu); }
  static uint64_t HashOf(std::string_view bytes);

  Token FindShort(uint64_t key) const {
    for (size_t i = Slot(key ^ (key >> 32), short_shift_);; i = (i + 1) & (short_.size() - 1)) {
      if (short_[i].key == key) return short_[i].token;
      if (short_[i].token == kNoToken) return kNoToken;
    }
  }
  Token FindMiddle(const MiddleKey& key) const {
    for (size_t i = Slot(Mix(key), middle_shift_);; i = (i + 1) & (middle_.size() - 1)) {
      if (middle_[i].key == key) return middle_[i].token;
      if (middle_[i].token == kNoToken) return kNoToken;
    }
  }
  Token FindLong(std::string_view bytes) const;
  Status Insert(Token token);
  Status CheckRuns() const;

  std::string bytes_;                    // all tokens, end to end
  std::vector<uint32_t> offsets_ = {0};  // [size + 1]
  // Powers of two, at most half full.
  std::vector<ShortSlot> short_;
  std::vector<MiddleSlot> middle_;
  std::vector<LongSlot> long_;
  int short_shift_ = 0, middle_shift_ = 0, long_shift_ = 0;  // 64 - log2 of the sizes
};

}  // namespace hearth
