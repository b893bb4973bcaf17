// SPDX-License-Identifier: Apache-2.0
// Large memory straight from the operating system, for weights and KV blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
namespace hearth {

// Zero-filled, private, aligned to kAlignment so that the kernel can back it with huge pages (it is
// asked to; it may decline). Memory is taken when first touched, not here.
// Thread: any, as for plain bytes. Owner: the object; spans must not outlive it.
class LargeBuffer {
 public:
  static constexpr size_t kAlignment = size_t{2} << 20;  // a huge page of x86-64

  // kExhausted when the system will not give the address space; kInvalid for 0 bytes.
  static Result<LargeBuffer> Make(size_t num_bytes);
  LargeBuffer(LargeBuffer&& other) noexcept;
  LargeBuffer& operator=(LargeBuffer&& other) noexcept;
  ~LargeBuffer();
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Takes the memory of the part that begins at `offset` now; the contents stay. kExhausted when
  // the system has none. Thread: any, for different parts at the same time.
  Status Take(size_t offset, size_t num_bytes);

  // Memory of this part, which is not taken yet, comes from a memory node, or page by page from
  // several in turn; from others when those have none. Whole pages: `offset` is one's start. False
  // when the system does not do that: then it comes from wherever.
  bool Prefer(size_t offset, size_t num_bytes, std::span<const int> nodes);

 private:
  explicit LargeBuffer(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

// A file of which only some pieces were kept, at the offsets they had. Like a sparse file it reads
// as zeros elsewhere and takes no memory there. Thread: fill from one; then any.
class SparseBytes {
 public:
  // kExhausted when the system will not give the address space; kInvalid for 0 bytes.
  static Result<SparseBytes> Make(size_t num_bytes);
  SparseBytes(SparseBytes&& other) noexcept;
  SparseBytes& operator=(SparseBytes&& other) noexcept;
  ~SparseBytes();
  // The part must lie inside.
  Status Fill(size_t offset, std::span<const std::byte> part);
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit SparseBytes(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

// Whether the address space of this process is limited (ulimit -v).
bool HasAddressLimit();
// Address space that a new thread takes for its stack.
int64_t ThreadStackBytes();
// Where address space is limited, allocations of all threads come from one place from now on. Else
// each thread reserves 64 MiB for its own, and what somebody else needs later is not there. Before
// the threads.
void SpareAddressSpace();

// Memory that nobody uses, not even as a cache; 0 when the system does not say. A hint: it changes.
uint64_t FreeMemoryBytes();

}  // namespace hearth
