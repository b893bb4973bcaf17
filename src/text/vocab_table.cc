// SPDX-License-Identifier: Apache-2.0
#include "text/vocab_table.h"

#include <algorithm>
#include <bit>

namespace hearth {
namespace {

// Longest stretch of taken slots that lookups may have to walk. Honest vocabularies stay below 60;
// a file made to collide would turn every lookup into a scan, so it is refused.
constexpr size_t kMaxRun = 1024;

template <class Slot>
int Reserve(size_t count, std::vector<Slot>& slots) {
  const size_t size = std::bit_ceil(2 * count + 2);
  slots.assign(size, Slot());
  return 64 - std::countr_zero(size);
}

template <class Slot>
size_t LongestRun(const std::vector<Slot>& slots) {
  size_t longest = 0, run = 0;
  for (const Slot& slot : slots) {
    run = slot.token == kNoToken ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest;
}

// Walks from `i` to a slot that is free or `same`; null when that takes too long.
template <class Slot, class Same>
Slot* FreeOrSame(std::vector<Slot>& slots, size_t i, const Same& same) {
  for (size_t steps = 0; steps < kMaxRun; ++steps, i = (i + 1) & (slots.size() - 1)) {
    if (slots[i].token == kNoToken || same(slots[i])) return &slots[i];
  }
  return nullptr;
}

}  // namespace

uint64_t VocabTable::HashOf(std::string_view bytes) {
  uint64_t hash = bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    hash = (hash ^ Load<uint64_t>(bytes.data() + i)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  // The last eight bytes overlap what was hashed already; callers have at least 16.
  hash = (hash ^ Load<uint64_t>(bytes.data() + bytes.size() - 8)) * 0xc2b2ae3d27d4eb4fu;
  return hash ^ (hash >> 29);
}

Token VocabTable::FindLong(std::string_view bytes) const {
  const uint64_t hash = HashOf(bytes);
  for (size_t i = Slot(hash, long_shift_);; i = (i + 1) & (long_.size() - 1)) {
    const LongSlot& slot = long_[i];
    if (slot.token == kNoToken) return kNoToken;
    if (slot.hash == static_cast<uint32_t>(hash) && Bytes(slot.token) == bytes) return slot.token;
  }
}

Status VocabTable::Insert(Token token) {
  const std::string_view bytes = Bytes(token);
  const auto same = [&](const auto& slot) { return Bytes(slot.token) == bytes; };
  const auto fill = [&](auto* slot, const auto& content) -> Status {
    if (slot == nullptr) {
      return Error(Code::kInvalid,
                   "too many tokens collide in the hash table: not a plausible vocabulary");
    }
    if (slot->token != kNoToken) {
      return Error(Code::kInvalid, "the tokens %d and %d are both %s", slot->token, token,
                   Quoted(bytes).c_str());
    }
    *slot = content;
    return Status();
  };
  if (bytes.size() <= 7) {
    const uint64_t key = ShortKey(bytes);
    const size_t home = Slot(key ^ (key >> 32), short_shift_);
    return fill(FreeOrSame(short_, home, same), ShortSlot{key, token});
  }
  if (bytes.size() <= 15) {
    const MiddleKey key = MiddleKeyOf(bytes);
    const size_t home = Slot(Mix(key), middle_shift_);
    return fill(FreeOrSame(middle_, home, same), MiddleSlot{key, token});
  }
  const uint64_t hash = HashOf(bytes);
  const size_t home = Slot(hash, long_shift_);
  return fill(FreeOrSame(long_, home, same), LongSlot{static_cast<uint32_t>(hash), token});
}

Status VocabTable::CheckRuns() const {
  const size_t longest = std::max({LongestRun(short_), LongestRun(middle_), LongestRun(long_)});
  if (longest > kMaxRun) {
    return Error(
        Code::kInvalid,
        "too many tokens collide in the hash table (runs of %zu): not a plausible vocabulary",
        longest);
  }
  return Status();
}

Result<VocabTable> VocabTable::Make(std::span<const std::string> tokens,
                                    std::span<const uint8_t> findable) {
  HEARTH_CHECK(tokens.size() == findable.size());
  VocabTable table;
  size_t num_bytes = 0, num_short = 0, num_middle = 0, num_long = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    num_bytes += tokens[i].size();
    if (findable[i] == 0) continue;
    if (tokens[i].empty()) return Error(Code::kInvalid, "the token %zu is empty", i);
    ++(tokens[i].size() <= 7 ? num_short : tokens[i].size() <= 15 ? num_middle : num_long);
  }
  if (num_bytes > UINT32_MAX || tokens.size() > INT32_MAX) {
    return Error(Code::kInvalid, "%zu tokens of %zu bytes are too many", tokens.size(), num_bytes);
  }
  table.bytes_.reserve(num_bytes);
  table.offsets_.reserve(tokens.size() + 1);
  for (const std::string& token : tokens) {
    table.bytes_ += token;
    table.offsets_.push_back(static_cast<uint32_t>(table.bytes_.size()));
  }
  table.short_shift_ = Reserve(num_short, table.short_);
  table.middle_shift_ = Reserve(num_middle, table.middle_);
  table.long_shift_ = Reserve(num_long, table.long_);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (findable[i] != 0) HEARTH_TRY(table.Insert(static_cast<Token>(i)));
  }
  HEARTH_TRY(table.CheckRuns());
  return table;
}

}  // namespace hearth
