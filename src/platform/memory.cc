// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace hearth {

Result<LargeBuffer> LargeBuffer::Make(size_t num_bytes) {
  if (num_bytes == 0) return Error(Code::kInvalid, "a buffer of 0 bytes");
  // mmap aligns to small pages only: take room for moving the start up, and give back the rest.
  const auto length = Checked(num_bytes).AlignedUp(kAlignment).value();
  const auto room = (Checked(num_bytes).AlignedUp(kAlignment) + kAlignment).value();
  if (!room) return Error(Code::kExhausted, "no memory of %zu bytes exists", num_bytes);
  void* found = ::mmap(nullptr, *room, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) {
    return Error(Code::kExhausted, "cannot reserve %zu bytes: %s", num_bytes, std::strerror(errno));
  }
  auto* start = static_cast<std::byte*>(found);
  const size_t skipped = -reinterpret_cast<uintptr_t>(start) % kAlignment;
  if (skipped > 0) ::munmap(start, skipped);
  if (skipped < kAlignment) ::munmap(start + skipped + *length, kAlignment - skipped);
  start += skipped;
  // Advice: on a kernel without huge pages the buffer is as good, only slower.
  static_cast<void>(::madvise(start, *length, MADV_HUGEPAGE));
  return LargeBuffer({start, num_bytes});
}

LargeBuffer::LargeBuffer(LargeBuffer&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

LargeBuffer& LargeBuffer::operator=(LargeBuffer&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

LargeBuffer::~LargeBuffer() {
  // The mapping is longer than the span: whole huge pages.
  const size_t length = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (length > 0) ::munmap(bytes_.data(), length);
}

uint64_t FreeMemoryBytes() {
  struct sysinfo info;
  if (::sysinfo(&info) != 0) return 0;
  return uint64_t{info.freeram} * info.mem_unit;
}

}  // namespace hearth
