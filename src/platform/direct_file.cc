// SPDX-License-Identifier: Apache-2.0
#include "platform/direct_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "platform/memory.h"

namespace hearth {
namespace {

Status OsError(const std::string& path, const char* doing) {
  return Error(Code::kIo, "%s: %s: %s", path.c_str(), doing, std::strerror(errno));
}

// Some file systems take the flag and then refuse the reads.
bool ReadsDirectly(int descriptor) {
  alignas(DirectFile::kAlignment) std::byte block[DirectFile::kAlignment];
  return ::pread(descriptor, block, sizeof block, 0) >= 0 || errno != EINVAL;
}

}  // namespace

Result<DirectFile> DirectFile::Open(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  int descriptor = ::open(path.c_str(), kFlags | O_DIRECT);
  const bool is_direct = descriptor >= 0 && ReadsDirectly(descriptor);
  if (!is_direct) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = ::open(path.c_str(), kFlags);
  }
  if (descriptor < 0) return OsError(path, "cannot open");
  DirectFile file(path, descriptor, 0, is_direct);
  struct stat info;
  if (::fstat(descriptor, &info) != 0) return OsError(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) {
    return Error(Code::kInvalid, "%s: not a regular file; expected a file on disk", path.c_str());
  }
  file.num_bytes_ = static_cast<uint64_t>(info.st_size);
  return file;
}

DirectFile::DirectFile(DirectFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      num_bytes_(other.num_bytes_),
      is_direct_(other.is_direct_) {}

DirectFile& DirectFile::operator=(DirectFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(num_bytes_, other.num_bytes_);
  std::swap(is_direct_, other.is_direct_);
  return *this;
}

DirectFile::~DirectFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status DirectFile::ReadAt(uint64_t offset, std::span<std::byte> to, size_t needed) const {
  size_t done = 0;
  while (done < needed) {
    // A read that stopped inside a block goes on at the block's start.
    done = done / kAlignment * kAlignment;
    iovec rest{to.data() + done, to.size() - done};
    const ssize_t got = ::preadv(descriptor_, &rest, 1, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError(path_, "cannot read");
    const size_t now = done + static_cast<size_t>(got);
    // Nothing new, or less than a block of it: the file has an end here.
    if (now < needed && static_cast<size_t>(got) < kAlignment) {
      struct stat info{};
      static_cast<void>(::fstat(descriptor_, &info));
      return Error(Code::kCorrupt,
                   "%s: the file ends at byte %lld, expected %" PRIu64
                   " or more; was it changed while it was used?",
                   path_.c_str(), static_cast<long long>(info.st_size), offset + needed);
    }
    done = now;
  }
  if (!is_direct_) {
    ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(to.size()),
                    POSIX_FADV_DONTNEED);
  }
  return Status();
}

Result<double> MeasureReadRate(const std::string& path, uint64_t piece) {
  HEARTH_ASSIGN(const DirectFile file, DirectFile::Open(path));
  constexpr uint64_t kUnit = DirectFile::kAlignment;
  const uint64_t size = std::clamp(piece, kUnit, uint64_t{16} << 20) / kUnit * kUnit;
  if (file.num_bytes() < size) {
    return Error(Code::kInvalid, "%s: too short to measure the disk with", path.c_str());
  }
  HEARTH_ASSIGN(LargeBuffer buffer, LargeBuffer::Make(size));
  HEARTH_TRY(buffer.Take(0, size));
  const uint64_t places = (file.num_bytes() - size) / kUnit + 1;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  double seconds = 0;
  uint64_t bytes = 0, place = places / 2;
  while (seconds < 0.2) {
    HEARTH_TRY(file.ReadAt(place * kUnit, buffer.bytes(), size));
    bytes += size;
    place = (place + 0x9e3779b97f4a7c15ULL) % places;  // far from the last one
    seconds = std::chrono::duration<double>(Clock::now() - began).count();
  }
  return static_cast<double>(bytes) / seconds;
}

}  // namespace hearth
