// SPDX-License-Identifier: Apache-2.0
#include "engine/draft.h"

#include <algorithm>

#include "base/check.h"
#include "base/mix.h"

namespace hearth {
namespace {

constexpr size_t kFirstSlots = 256;

}  // namespace

// Of the pair of tokens that ends at `position`.
size_t SuffixIndex::SlotOf(std::span<const Token> tokens, int position) const {
  const auto at = static_cast<size_t>(position);
  const auto pair =
      uint64_t{static_cast<uint32_t>(tokens[at - 1])} << 32 | static_cast<uint32_t>(tokens[at]);
  return MixBits(pair) & (latest_.size() - 1);
}

void SuffixIndex::Insert(std::span<const Token> tokens, int position) {
  int32_t& latest = latest_[SlotOf(tokens, position)];
  before_[static_cast<size_t>(position) & (before_.size() - 1)] = latest;
  latest = position;
}

void SuffixIndex::Grow(std::span<const Token> tokens, size_t slots) {
  latest_.assign(slots, -1);
  before_.assign(slots, -1);
  const int first = std::max(1, num_inserted_ - static_cast<int>(slots));
  for (int position = first; position < num_inserted_; ++position) Insert(tokens, position);
}

void SuffixIndex::Extend(std::span<const Token> tokens) {
  const auto size = static_cast<int>(tokens.size());
  HEARTH_CHECK(size >= num_inserted_);
  // The last pair is what Find looks for: it must not find itself.
  const int end = size - 1;
  if (end <= num_inserted_) return;
  size_t slots = std::max(latest_.size(), kFirstSlots);
  while (slots < tokens.size() && slots < static_cast<size_t>(kMaxWindow)) slots *= 2;
  if (slots != latest_.size()) Grow(tokens, slots);
  for (int position = std::max(1, num_inserted_); position < end; ++position) {
    Insert(tokens, position);
  }
  num_inserted_ = end;
}

SuffixMatch SuffixIndex::Find(std::span<const Token> tokens) const {
  SuffixMatch best;
  const int last = static_cast<int>(tokens.size()) - 1;
  if (last < kMinLength || num_inserted_ != last) return best;
  const int oldest = std::max(1, num_inserted_ - static_cast<int>(before_.size()));
  int32_t place = latest_[SlotOf(tokens, last)];
  for (int tries = 0; tries < kMaxTries && place >= oldest; ++tries) {
    const int most = std::min(place + 1, kMaxLength);
    int length = 0;
    while (length < most && tokens[static_cast<size_t>(place - length)] ==
                                tokens[static_cast<size_t>(last - length)]) {
      ++length;
    }
    if (length >= kMinLength && length > best.length) best = {length, place + 1};
    if (length == kMaxLength) break;
    place = before_[static_cast<size_t>(place) & (before_.size() - 1)];
  }
  return best;
}

void CopyDraft(std::span<const Token> tokens, const SuffixMatch& match, int count,
               std::vector<Token>& draft) {
  draft.clear();
  const auto next = static_cast<size_t>(match.next);
  HEARTH_CHECK(next < tokens.size());
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const size_t from = next + i;
    draft.push_back(from < tokens.size() ? tokens[from] : draft[from - tokens.size()]);
  }
}

}  // namespace hearth
