// SPDX-License-Identifier: Apache-2.0
// Memory for what RocksDB reads, used again and again: it is copied out at once, and fresh memory
// would cost a page fault every 4 KiB, which is about what reading 4 KiB from the system's cache
// does.
#pragma once
#include <rocksdb/memory_allocator.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/mutex.h"
namespace hearth {

// Thread: any.
class ReadBuffers : public rocksdb::MemoryAllocator {
 public:
  const char* Name() const override { return "hearth.ReadBuffers"; }
  void* Allocate(size_t size) override {
    {
      const MutexLock lock(mu_);
      if (!free_.empty() && free_.back()->capacity >= size) {
        Head* head = free_.back().release();
        free_.pop_back();
        return head + 1;
      }
    }
    // Rounded up, so that blocks of nearly the same length fit.
    const size_t capacity = (size + kRound - 1) / kRound * kRound;
    void* memory = std::malloc(sizeof(Head) + capacity);
    if (memory == nullptr) return nullptr;
    return new (memory) Head{capacity} + 1;
  }
  void Deallocate(void* memory) override {
    Owner head(static_cast<Head*>(memory) - 1);
    const bool is_kept = head->capacity >= kLeastKept && head->capacity <= kMostKept;
    const MutexLock lock(mu_);
    if (is_kept && free_.size() < kBuffersKept) free_.push_back(std::move(head));
  }

 private:
  static constexpr size_t kRound = size_t{16} << 10;
  static constexpr size_t kLeastKept = size_t{32} << 10, kMostKept = size_t{4} << 20;
  static constexpr size_t kBuffersKept = 8;
  struct alignas(64) Head {
    size_t capacity;
  };
  struct Free {
    void operator()(Head* head) const { std::free(head); }
  };
  using Owner = std::unique_ptr<Head, Free>;

  Mutex mu_;
  std::vector<Owner> free_ HEARTH_GUARDED_BY(mu_);
};

}  // namespace hearth
