// SPDX-License-Identifier: Apache-2.0
// What a modelled replica has cached: names of pages, the least recently used going first. Stands
// for kv/prefix_cache.h where a thousand of those would be too slow.
#pragma once
#include <cstdint>
#include <vector>
namespace hearth {

// Thread: one.
class PageCache {
 public:
  explicit PageCache(int64_t capacity) : capacity_(capacity) {}

  bool Has(uint64_t name) const { return Slot(name) >= 0; }
  // It is there from now on, and the last to go. At capacity the oldest goes.
  void Use(uint64_t name);
  // How many may be kept; what is too many goes.
  void SetCapacity(int64_t pages);
  void Clear();
  int64_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t name = 0;
    int32_t newer = -1, older = -1;
  };
  int64_t Slot(uint64_t name) const;
  void Unlink(int32_t entry);
  void Link(int32_t entry);
  void DropOldest();
  void Grow();

  int64_t capacity_;
  int64_t size_ = 0;
  std::vector<Entry> entries_;
  std::vector<int32_t> free_;
  std::vector<int32_t> table_;  // open addressing, a power of two; -1: empty
  int32_t newest_ = -1, oldest_ = -1;
};

}  // namespace hearth
