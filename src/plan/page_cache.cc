// SPDX-License-Identifier: Apache-2.0
#include "plan/page_cache.h"

#include <algorithm>
#include <utility>

namespace hearth {

// Names are hashes already.
int64_t PageCache::Slot(uint64_t name) const {
  if (table_.empty()) return -1;
  const size_t mask = table_.size() - 1;
  for (size_t at = name & mask;; at = (at + 1) & mask) {
    if (table_[at] < 0) return -1;
    if (entries_[static_cast<size_t>(table_[at])].name == name) return static_cast<int64_t>(at);
  }
}

void PageCache::Grow() {
  const std::vector<int32_t> before =
      std::exchange(table_, std::vector<int32_t>(std::max<size_t>(64, 2 * table_.size()), -1));
  const size_t mask = table_.size() - 1;
  for (const int32_t entry : before) {
    if (entry < 0) continue;
    size_t at = entries_[static_cast<size_t>(entry)].name & mask;
    while (table_[at] >= 0) at = (at + 1) & mask;
    table_[at] = entry;
  }
}

void PageCache::Unlink(int32_t entry) {
  const Entry& e = entries_[static_cast<size_t>(entry)];
  (e.newer < 0 ? newest_ : entries_[static_cast<size_t>(e.newer)].older) = e.older;
  (e.older < 0 ? oldest_ : entries_[static_cast<size_t>(e.older)].newer) = e.newer;
}

void PageCache::Link(int32_t entry) {
  Entry& e = entries_[static_cast<size_t>(entry)];
  e.newer = -1;
  e.older = newest_;
  (newest_ < 0 ? oldest_ : entries_[static_cast<size_t>(newest_)].newer) = entry;
  newest_ = entry;
}

void PageCache::DropOldest() {
  const int32_t entry = oldest_;
  const size_t mask = table_.size() - 1;
  auto hole = static_cast<size_t>(Slot(entries_[static_cast<size_t>(entry)].name));
  // Those behind it that would not be found any more move up.
  for (size_t at = (hole + 1) & mask; table_[at] >= 0; at = (at + 1) & mask) {
    const size_t home = entries_[static_cast<size_t>(table_[at])].name & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = -1;
  Unlink(entry);
  free_.push_back(entry);
  --size_;
}

void PageCache::Use(uint64_t name) {
  const int64_t slot = Slot(name);
  if (slot >= 0) {
    const int32_t entry = table_[static_cast<size_t>(slot)];
    if (entry == newest_) return;
    Unlink(entry);
    Link(entry);
    return;
  }
  if (capacity_ <= 0) return;
  while (size_ >= capacity_) DropOldest();
  if (static_cast<size_t>(2 * (size_ + 1)) > table_.size()) Grow();
  int32_t entry = static_cast<int32_t>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    entry = free_.back();
    free_.pop_back();
  }
  entries_[static_cast<size_t>(entry)].name = name;
  Link(entry);
  const size_t mask = table_.size() - 1;
  size_t at = name & mask;
  while (table_[at] >= 0) at = (at + 1) & mask;
  table_[at] = entry;
  ++size_;
}

void PageCache::SetCapacity(int64_t pages) {
  capacity_ = pages;
  while (size_ > std::max<int64_t>(0, capacity_)) DropOldest();
}

void PageCache::Clear() {
  entries_.clear();
  free_.clear();
  table_.clear();
  newest_ = oldest_ = -1;
  size_ = 0;
}

}  // namespace hearth
