// SPDX-License-Identifier: Apache-2.0
// Memory for the activations of a step: reserved for the largest one when a backend opens.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "platform/memory.h"
namespace hearth {

// One piece of memory from which the buffers of a step are cut, on huge pages: a step of 512 tokens
// has tens of megabytes of activations that tiles read and write row by row, and on small pages
// each row is a page of its own whose look-up takes longer than the arithmetic. Address space until
// it is touched. Without memory it only counts, so that a plan and what is reserved are the same
// walk. Thread: one.
class ScratchArena {
 public:
  ScratchArena() = default;
  // kExhausted when the system does not have so much.
  static Result<ScratchArena> Make(int64_t num_bytes) {
    ScratchArena arena;
    HEARTH_ASSIGN(LargeBuffer buffer, LargeBuffer::Make(static_cast<size_t>(num_bytes)));
    arena.buffer_ = std::move(buffer);
    return arena;
  }
  // The next piece, at the beginning of a page; null while it only counts.
  std::byte* Cut(int64_t num_bytes) {
    constexpr int64_t kPage = 4096;
    const int64_t at = used_;
    used_ += (num_bytes + kPage - 1) / kPage * kPage;
    if (!buffer_) return nullptr;
    HEARTH_CHECK(static_cast<size_t>(used_) <= buffer_->bytes().size());
    return buffer_->bytes().data() + at;
  }
  int64_t used_bytes() const { return used_; }
  // Takes the memory now.
  Status Take() { return buffer_ ? buffer_->Take(0, buffer_->bytes().size()) : Status(); }

 private:
  std::optional<LargeBuffer> buffer_;
  int64_t used_ = 0;
};

// A buffer that was reserved for the largest step. One that was not, or a step that nobody planned,
// grows to the largest size asked for and stays. Thread: as for plain bytes.
template <class T>
class Scratch {
 public:
  // Room for `count` values, as long as the arena is there.
  void Reserve(ScratchArena& arena, int64_t count) {
    if (count <= 0) return;
    auto* piece = reinterpret_cast<T*>(arena.Cut(count * static_cast<int64_t>(sizeof(T))));
    if (piece == nullptr) return;
    grown_.reset();
    data_ = piece;
    capacity_ = count;
  }
  // Room for `count` values. What was there is lost when it grows. Throws bad_alloc when it cannot;
  // so it is called on the thread that runs the step, never on those that help it.
  T* Room(int64_t count) {
    if (count > capacity_) Grow(count);
    return data_;
  }
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  void Grow(int64_t count) {
    if (grown_) {
      grown_.reset();
      data_ = nullptr;
      capacity_ = 0;
    }
    // Twice the need, so that steps of growing size seldom move it: address space that nobody
    // touches takes no memory. Where even that is limited, the need alone.
    for (const int64_t room : {2 * count, count}) {
      auto made = LargeBuffer::Make(static_cast<size_t>(room) * sizeof(T));
      if (!made.ok()) continue;
      grown_ = std::move(*made);
      data_ = reinterpret_cast<T*>(grown_->bytes().data());
      capacity_ = room;
      return;
    }
    throw std::bad_alloc();
  }

  std::optional<LargeBuffer> grown_;
  T* data_ = nullptr;
  int64_t capacity_ = 0;
};

}  // namespace hearth
