// SPDX-License-Identifier: Apache-2.0
// Files of the operating system. What is inside them is somebody else's business.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
namespace hearth {

// A whole regular file mapped read-only. Truncating the file under a mapping is fatal on Linux
// (SIGBUS), so only tools and the reference read weights this way; serving copies (decision 0004).
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // `part` was read and is not needed for now: its pages leave this process. They stay readable and
  // usually cached; `from_cache` gives them up there too. The part may reach beyond this file.
  // Thread: any.
  void Release(std::span<const std::byte> part, bool from_cache) const;
  // The kernel may back the mapping with huge pages, and should when it reads the file for it.
  void PreferHugePages() const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  std::span<const std::byte> bytes_;
};

enum class FileReaders : unsigned char { kAll, kOwner };

// A file on its way to replace another: written beside it under another name, and gone again unless
// it was kept. Thread: one.
class DraftFile {
 public:
  // Reserves `num_bytes` where the file system can, so that a full disk is known at once. With
  // kOwner a new file is its owner's alone; one that is replaced keeps its mode.
  static Result<DraftFile> Create(const std::string& path, uint64_t num_bytes,
                                  FileReaders readers = FileReaders::kAll);
  DraftFile(DraftFile&& other) noexcept;
  DraftFile& operator=(DraftFile&&) = delete;
  ~DraftFile();
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  // To disk, and in place of `path`: a reader sees the old bytes or the new ones.
  Status Keep();

 private:
  DraftFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string draft() const { return path_ + ".tmp"; }
  std::string path_;
  int descriptor_;  // -1 once kept or moved away
};

// The folder of a file, for this process alone until this goes: whoever reads a file to write it
// changed takes it first, so that of two changes none is lost. No file is left behind. Thread: one.
class FolderLock {
 public:
  // Waits for whoever has it.
  static Result<FolderLock> Take(const std::string& path_of_file);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// The whole file as text; larger than `max_bytes` is an error, not a cut.
Result<std::string> ReadTextFile(const std::string& path, size_t max_bytes);
// A file of the kernel (/proc, /sys, a cgroup); one that is absent, unreadable or
// longer is an empty text.
std::string ReadKernelText(const std::string& path, size_t max_bytes);
// Replaces the file's content in one step: a reader sees the old bytes or the new ones.
Status WriteFileAtomically(const std::string& path, std::span<const std::byte> bytes,
                           FileReaders readers = FileReaders::kAll);
bool IsDirectory(const std::string& path);
bool FileExists(const std::string& path);

}  // namespace hearth
