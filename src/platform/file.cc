// SPDX-License-Identifier: Apache-2.0
#include "platform/file.h"

#include <fcntl.h>
#include <sys/file.h>
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
  const bool creates = std::string_view(doing) == "cannot create";
  const char* hint = why == EACCES    ? "; change its mode or owner, or run as a user that may"
                     : why == ENOMEM  ? "; raise the limit on address space (ulimit -v)"
                     : why == ENOTDIR ? "; a part of this path is a file, not a folder"
                     : why == ENOENT && creates ? "; make the folder first"
                                                : "";
  return Error(code, "%s: %s: %s%s", path.c_str(), doing, std::strerror(why), hint);
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

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Opens a regular file for reading and tells its size. O_NONBLOCK, so that a FIFO handed to us as
// a model is refused by the type check instead of blocking in open().
Result<uint64_t> SizeOfRegular(const Descriptor& file, const std::string& path) {
  if (file.get() < 0) return OsError(path, "cannot open");
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return OsError(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) {
    return Error(Code::kInvalid, "%s: not a regular file; expected a file on disk", path.c_str());
  }
  return static_cast<uint64_t>(info.st_size);
}

Status TooLong(const std::string& path, uint64_t size, size_t max_bytes) {
  return Error(Code::kInvalid, "%s: %" PRIu64 " bytes, the limit is %zu", path.c_str(), size,
               max_bytes);
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  HEARTH_ASSIGN(const uint64_t size, SizeOfRegular(file, path));
  if (size == 0)
    return Error(Code::kCorrupt, "%s: the file is empty; download it again", path.c_str());
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

std::string ReadKernelText(const std::string& path, size_t max_bytes) {
  Result<std::string> text = ReadTextFile(path, max_bytes);
  return text.ok() ? *std::move(text) : std::string();
}

Result<DraftFile> DraftFile::Create(const std::string& path, uint64_t num_bytes,
                                    FileReaders readers) {
  const std::string name = path + ".tmp";
  const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                                readers == FileReaders::kOwner ? 0600 : 0644);
  if (descriptor < 0) return OsError(name, "cannot create");
  DraftFile draft(path, descriptor);
  if (readers == FileReaders::kOwner) {
    struct stat before;
    const bool exists = ::stat(path.c_str(), &before) == 0;
    // Also of a draft that somebody left behind.
    if (::fchmod(descriptor, exists ? before.st_mode & 0777 : 0600) != 0) {
      return OsError(name, "cannot set the mode");
    }
  }
  if (num_bytes == 0) return draft;
  // Not every file system can; what matters is whether the disk says it is full.
  const int why = ::posix_fallocate(descriptor, 0, static_cast<off_t>(num_bytes));
  if (why == ENOSPC || why == EDQUOT || why == EFBIG) {
    return Error(Code::kIo, "%s: cannot reserve %" PRIu64 " bytes: %s", path.c_str(), num_bytes,
                 std::strerror(why));
  }
  return draft;
}

DraftFile::DraftFile(DraftFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

DraftFile::~DraftFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(draft().c_str());
}

Status DraftFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return OsError(path_, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(wrote));
    offset += static_cast<uint64_t>(wrote);
  }
  return Status();
}

Status DraftFile::Keep() {
  if (::fsync(descriptor_) != 0) return OsError(path_, "cannot sync");
  if (::rename(draft().c_str(), path_.c_str()) != 0) return OsError(path_, "cannot replace");
  ::close(std::exchange(descriptor_, -1));
  // The new name too must outlive a power cut; where a folder cannot be synced, it may be the old.
  const Descriptor folder(::open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) static_cast<void>(::fsync(folder.get()));
  return Status();
}

Result<FolderLock> FolderLock::Take(const std::string& path_of_file) {
  const std::string folder = FolderOf(path_of_file);
  FolderLock lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.descriptor_ < 0) return OsError(folder, "cannot open");
  while (::flock(lock.descriptor_, LOCK_EX) != 0) {
    if (errno != EINTR) return OsError(folder, "cannot lock");
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes,
                           FileReaders readers) {
  HEARTH_ASSIGN(DraftFile draft, DraftFile::Create(path, 0, readers));
  HEARTH_TRY(draft.WriteAt(0, bytes));
  return draft.Keep();
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
