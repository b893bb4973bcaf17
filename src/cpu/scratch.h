// SPDX-License-Identifier: Apache-2.0
// Memory for the activations of a step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/check.h"
#include "platform/memory.h"
namespace hearth {

// Grows to the largest size asked for and stays; starts on a huge page. A step of 512 tokens has
// tens of megabytes of activations that tiles read and write row by row: on small pages each row is
// a page of its own and looking it up takes longer than the arithmetic.
// Thread: as for plain bytes.
template <class T>
class Scratch {
 public:
  // Room for `count` values. What was there is lost when it grows.
  T* Room(int64_t count) {
    if (count > capacity_) {
      // Twice the need, so that steps of growing size seldom move it: address space that nobody
      // touches takes no memory.
      buffer_.reset();
      auto made = LargeBuffer::Make(2 * static_cast<size_t>(count) * sizeof(T));
      HEARTH_CHECK(made.ok());
      buffer_ = std::move(*made);
      capacity_ = 2 * count;
    }
    return data();
  }
  T* data() { return buffer_ ? reinterpret_cast<T*>(buffer_->bytes().data()) : nullptr; }
  T& operator[](size_t i) { return data()[i]; }

 private:
  std::optional<LargeBuffer> buffer_;
  int64_t capacity_ = 0;
};

}  // namespace hearth
