// SPDX-License-Identifier: Apache-2.0
#include "platform/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hearth {
namespace {

Status OsError(const std::string& path, const char* doing) {
  const int why = errno;
  const Code code = why == ENOENT || why == ENOTDIR ? Code::kNotFound : Code::kIo;
  return Error(code, "%s: %s: %s", path.c_str(), doing, std::strerror(why));
}

// An open descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Opens a regular file for reading and tells its size. O_NONBLOCK, so that a FIFO handed to us as
// a model is refused by the type check instead of blocking in open().
Result<uint64_t> SizeOfRegular(const Descriptor& file, const std::string& path) {
  if (file.get() < 0) return OsError(path, "cannot open");
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return OsError(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) {
    return Error(Code::kInvalid, "%s: not a regular file", path.c_str());
  }
  return static_cast<uint64_t>(info.st_size);
}

Status TooLong(const std::string& path, uint64_t size, size_t max_bytes) {
  return Error(Code::kInvalid, "%s: %" PRIu64 " bytes, the limit is %zu", path.c_str(), size,
               max_bytes);
}

Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return OsError(path, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return Status();
}

Status WriteDraft(const std::string& draft, std::span<const std::byte> bytes) {
  const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) return OsError(draft, "cannot create");
  HEARTH_TRY(WriteAll(file.get(), bytes, draft));
  if (::fsync(file.get()) != 0) return OsError(draft, "cannot sync");
  return Status();
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  HEARTH_ASSIGN(const uint64_t size, SizeOfRegular(file, path));
  if (size == 0) return Error(Code::kCorrupt, "%s: the file is empty", path.c_str());
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return OsError(path, "cannot map");
  return MappedFile(path, {static_cast<const std::byte*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::Release(std::span<const std::byte> part, bool from_cache) const {
  const auto start = reinterpret_cast<uintptr_t>(bytes_.data());
  const auto from = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = std::clamp(from, start, start + bytes_.size()) - start;
  const uintptr_t end = std::clamp(from + part.size(), start, start + bytes_.size()) - start;
  if (begin >= end) return;
  // Outwards to whole pages: a neighbour's byte is read again at the price of a page fault.
  constexpr size_t kPage = 4096;
  const size_t first = begin / kPage * kPage;
  static_cast<void>(
      ::madvise(const_cast<std::byte*>(bytes_.data()) + first, end - first, MADV_DONTNEED));
  if (!from_cache) return;
  // The cache gives up whole folios only, and those may be as large as a huge page: begin at the
  // part's first, whose front an earlier call had to leave.
  constexpr size_t kFolio = size_t{2} << 20;
  const size_t whole = begin / kFolio * kFolio;
  // Opened anew: a checkpoint may have more shards than a process may have descriptors.
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return;
  static_cast<void>(::posix_fadvise(file.get(), static_cast<off_t>(whole),
                                    static_cast<off_t>(end - whole), POSIX_FADV_DONTNEED));
}

void MappedFile::PreferHugePages() const {
  static_cast<void>(::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_HUGEPAGE));
}

Result<std::string> ReadTextFile(const std::string& path, size_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  HEARTH_ASSIGN(const uint64_t size, SizeOfRegular(file, path));
  if (size > max_bytes) return TooLong(path, size, max_bytes);
  // The size is only a hint: the kernel's own files say 0, and any file may change meanwhile.
  std::string text;
  size_t have = 0;
  while (have <= max_bytes) {
    if (have == text.size())
      text.resize(have + std::max<size_t>(size - std::min(size, have) + 1, 4096));
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError(path, "cannot read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  if (have > max_bytes) return TooLong(path, have, max_bytes);
  text.resize(have);
  return text;
}

Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes) {
  const std::string draft = path + ".tmp";
  Status written = WriteDraft(draft, bytes);
  if (written.ok() && ::rename(draft.c_str(), path.c_str()) != 0) {
    written = OsError(path, "cannot replace");
  }
  if (!written.ok()) ::unlink(draft.c_str());
  return written;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool FileExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace hearth
