// SPDX-License-Identifier: Apache-2.0
// Memory for records that are read, used again and again: fresh memory costs a page fault every
// 4 KiB, which is about what reading 4 KiB from the operating system's cache does.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/mutex.h"
namespace hearth {

// Thread: any.
class BufferPool {
 public:
  // Not initialised; null: there is none. Given back with Release.
  void* Allocate(size_t size) {
    {
      const MutexLock lock(mu_);
      if (!free_.empty() && free_.back()->capacity >= size) {
        Head* head = free_.back().release();
        free_.pop_back();
        free_bytes_ -= head->capacity;
        return head + 1;
      }
    }
    // Rounded up, so that records of nearly the same length fit.
    const size_t capacity = (size + kRound - 1) / kRound * kRound;
    void* memory = std::malloc(sizeof(Head) + capacity);
    if (memory == nullptr) return nullptr;
    return new (memory) Head{capacity} + 1;
  }
  void Release(void* memory) {
    Owner head(static_cast<Head*>(memory) - 1);
    const MutexLock lock(mu_);
    if (head->capacity < kLeastKept || free_bytes_ + head->capacity > kMostKept) return;
    free_bytes_ += head->capacity;
    free_.push_back(std::move(head));
  }

 private:
  static constexpr size_t kRound = size_t{16} << 10;
  // Short ones the allocator has at hand anyway.
  static constexpr size_t kLeastKept = size_t{32} << 10, kMostKept = size_t{16} << 20;
  struct alignas(64) Head {
    size_t capacity;
  };
  struct Free {
    void operator()(Head* head) const { std::free(head); }
  };
  using Owner = std::unique_ptr<Head, Free>;

  Mutex mu_;
  std::vector<Owner> free_ HEARTH_GUARDED_BY(mu_);
  size_t free_bytes_ HEARTH_GUARDED_BY(mu_) = 0;
};

// Bytes with what keeps their memory.
struct Buffer {
  std::shared_ptr<void> memory;
  std::span<std::byte> bytes;
};

// The pool lives as long as what came out of it. No bytes: there is no memory.
inline Buffer TakeBuffer(const std::shared_ptr<BufferPool>& pool, size_t size) {
  void* memory = pool->Allocate(size);
  if (memory == nullptr) return {};
  return {std::shared_ptr<void>(memory, [pool](void* back) { pool->Release(back); }),
          std::span(static_cast<std::byte*>(memory), size)};
}

}  // namespace hearth
