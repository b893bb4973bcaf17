// SPDX-License-Identifier: Apache-2.0
// A file read past the operating system's cache, for bytes that this process caches itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
namespace hearth {

// Reads go straight from the disk to memory (O_DIRECT); on file systems that cannot, through the
// cache, which is told to forget. Truncating the file is an error of the read that meets it, not a
// signal as under a mapping.
// Thread: any, also several at a time.
class DirectFile {
 public:
  static constexpr uint64_t kAlignment = 4096;  // of offsets, sizes and addresses

  static Result<DirectFile> Open(const std::string& path);
  DirectFile(DirectFile&& other) noexcept;
  DirectFile& operator=(DirectFile&& other) noexcept;
  ~DirectFile();

  // At least the first `needed` bytes of `to`; what lies behind the file's end stays as it was.
  // kIo when the disk fails, kCorrupt when the file ends before.
  Status ReadAt(uint64_t offset, std::span<std::byte> to, size_t needed) const;
  uint64_t num_bytes() const { return num_bytes_; }
  bool is_direct() const { return is_direct_; }

 private:
  DirectFile(std::string path, int descriptor, uint64_t num_bytes, bool is_direct)
      : path_(std::move(path)),
        descriptor_(descriptor),
        num_bytes_(num_bytes),
        is_direct_(is_direct) {}
  std::string path_;
  int descriptor_;
  uint64_t num_bytes_;
  bool is_direct_;
};

// Bytes per second of reads as large as `piece`, at places all over the file, for about a fifth of
// a second. kIo when the file cannot be read.
Result<double> MeasureReadRate(const std::string& path, uint64_t piece);

}  // namespace hearth
