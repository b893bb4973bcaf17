// SPDX-License-Identifier: Apache-2.0
// The one way to read numbers and strings out of bytes that nobody vouches for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
namespace hearth {

// Walks a span front to back; little-endian. Never reads past the end, never allocates: strings
// are views into the span. Every error names the offset and what was wanted there.
// Thread: one at a time; the bytes must outlive the reader and every view it handed out.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  Result<uint8_t> U8(const char* what);
  Result<uint16_t> U16(const char* what);
  Result<uint32_t> U32(const char* what);
  Result<uint64_t> U64(const char* what);
  // `count` bytes as they are.
  Result<std::span<const std::byte>> Bytes(uint64_t count, const char* what);
  // A 64-bit length and that many bytes; a length above `max_bytes` or the rest is refused.
  Result<std::string_view> String(uint64_t max_bytes, const char* what);
  // Says no unless `count` elements of at least `min_bytes` each can still follow. Call it before
  // reserving memory for `count` of anything: that bounds every allocation by the file's size.
  Status CanHold(uint64_t count, uint64_t min_bytes, const char* what) const;

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace hearth
