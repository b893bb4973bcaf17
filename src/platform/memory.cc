// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "platform/missing.h"

namespace hearth {

Result<LargeBuffer> LargeBuffer::Make(size_t num_bytes) {
  if (num_bytes == 0) return Error(Code::kInvalid, "a buffer of 0 bytes");
  // mmap aligns to small pages only: take room for moving the start up, and give back the rest.
  const auto length = Checked(num_bytes).AlignedUp(kAlignment).value();
  const auto room = (Checked(num_bytes).AlignedUp(kAlignment) + kAlignment).value();
  if (!room)
    return Error(Code::kExhausted, "%zu bytes of memory are more than this machine can address",
                 num_bytes);
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
  if (::madvise(start, *length, MADV_HUGEPAGE) != 0) {
    NoteMissing("huge pages are refused: memory is read about 10 % slower");
  }
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

Status LargeBuffer::Take(size_t offset, size_t num_bytes) {
  HEARTH_CHECK(offset <= bytes_.size() && num_bytes <= bytes_.size() - offset);
  constexpr size_t kPage = 4096;
  const size_t begin = offset / kPage * kPage, size = offset + num_bytes - begin;
  if (size == 0 || ::madvise(bytes_.data() + begin, size, MADV_POPULATE_WRITE) == 0)
    return Status();
  if (errno != EINVAL) {
    return Error(Code::kExhausted, "cannot take %zu bytes of memory: %s", size,
                 std::strerror(errno));
  }
  // A kernel before 5.14: the same by hand, where lack of memory is told by a signal.
  for (size_t at = begin; at < begin + size; at += kPage) {
    auto* byte = reinterpret_cast<volatile std::byte*>(bytes_.data() + at);
    *byte = *byte;
  }
  return Status();
}

bool LargeBuffer::Prefer(size_t offset, size_t num_bytes, std::span<const int> nodes) {
  HEARTH_CHECK(offset <= bytes_.size() && num_bytes <= bytes_.size() - offset);
  if (num_bytes == 0) return true;
  // linux/mempolicy.h's numbers; libnuma would be a library for one call.
  constexpr long kPreferred = 1, kInterleave = 3;
  constexpr size_t kWordBits = 8 * sizeof(unsigned long), kMostNodes = 1024;
  unsigned long mask[kMostNodes / kWordBits] = {};
  for (const int node : nodes) {
    if (node < 0 || static_cast<size_t>(node) >= kMostNodes) return false;
    const auto bit = static_cast<size_t>(node);
    mask[bit / kWordBits] |= 1ul << bit % kWordBits;
  }
  return ::syscall(SYS_mbind, bytes_.data() + offset, num_bytes,
                   nodes.size() == 1 ? kPreferred : kInterleave, mask, kMostNodes + 1, 0) == 0;
}

Result<SparseBytes> SparseBytes::Make(size_t num_bytes) {
  if (num_bytes == 0) return Error(Code::kInvalid, "0 bytes of address space");
  void* found =
      ::mmap(nullptr, num_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) {
    return Error(Code::kExhausted, "cannot reserve %zu bytes of address space: %s", num_bytes,
                 std::strerror(errno));
  }
  return SparseBytes({static_cast<std::byte*>(found), num_bytes});
}

SparseBytes::SparseBytes(SparseBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

SparseBytes& SparseBytes::operator=(SparseBytes&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

SparseBytes::~SparseBytes() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Status SparseBytes::Fill(size_t offset, std::span<const std::byte> part) {
  HEARTH_CHECK(offset <= bytes_.size() && part.size() <= bytes_.size() - offset);
  if (part.empty()) return Status();
  constexpr size_t kPage = 4096;
  const size_t begin = offset / kPage * kPage, size = offset + part.size() - begin;
  if (::mprotect(bytes_.data() + begin, size, PROT_READ | PROT_WRITE) != 0) {
    return Error(Code::kExhausted, "cannot use %zu bytes: %s", size, std::strerror(errno));
  }
  std::memcpy(bytes_.data() + offset, part.data(), part.size());
  static_cast<void>(::mprotect(bytes_.data() + begin, size, PROT_READ));
  return Status();
}

bool HasAddressLimit() {
  rlimit limit;
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

int64_t ThreadStackBytes() {
  pthread_attr_t how;
  size_t bytes = 0;
  if (::pthread_getattr_default_np(&how) != 0) return 0;
  ::pthread_attr_getstacksize(&how, &bytes);
  ::pthread_attr_destroy(&how);
  return static_cast<int64_t>(bytes);
}

void SpareAddressSpace() {
  if (HasAddressLimit()) ::mallopt(M_ARENA_MAX, 1);
}

uint64_t FreeMemoryBytes() {
  struct sysinfo info;
  if (::sysinfo(&info) != 0) return 0;
  return uint64_t{info.freeram} * info.mem_unit;
}

}  // namespace hearth
