// SPDX-License-Identifier: Apache-2.0
// Writing a packed file: sections in order, a hash per chunk on the way, the header last.
#include <algorithm>
#include <cstring>

#include "weights/packed_file.h"

namespace hearth {
namespace {

// Gathers sections into long writes and hashes each chunk of them.
class ChunkWriter {
 public:
  ChunkWriter(DraftFile& draft, const PackedHeader& header) : draft_(draft), header_(header) {
    buffer_.resize(kBufferBytes);
  }

  Status Append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t now = std::min(bytes.size(), kBufferBytes - used_);
      std::memcpy(buffer_.data() + used_, bytes.data(), now);
      used_ += now;
      bytes = bytes.subspan(now);
      if (used_ == kBufferBytes) HEARTH_TRY(Flush());
    }
    return Status();
  }
  Status ZerosUntil(uint64_t offset) {
    const std::vector<std::byte> zeros(offset - position());
    return Append(zeros);
  }
  Status Flush() {
    // The first write holds the header's place, which no chunk covers.
    for (size_t at = 0; at < used_; at += PackedFormat::kChunkBytes) {
      const uint64_t chunk = (written_ + at) / PackedFormat::kChunkBytes;
      const uint64_t begin = header_.chunk_begin(chunk), end = header_.chunk_end(chunk);
      hashes_.push_back(
          HashOf(std::span<const std::byte>(buffer_).subspan(begin - written_, end - begin)));
    }
    HEARTH_TRY(draft_.WriteAt(written_, std::span<const std::byte>(buffer_).first(used_)));
    written_ += used_;
    used_ = 0;
    return Status();
  }
  uint64_t position() const { return written_ + used_; }
  std::span<const std::byte> hashes() const { return std::as_bytes(std::span(hashes_)); }

 private:
  // Whole huge pages: a file system with large folios then caches the file in those.
  static constexpr size_t kBufferBytes = size_t{8} << 20;

  DraftFile& draft_;
  const PackedHeader& header_;
  std::vector<std::byte> buffer_;
  std::vector<ChunkHash> hashes_;
  size_t used_ = 0;
  uint64_t written_ = 0;
};

}  // namespace

Status WritePackedFile(const std::string& path, const PackedContent& content,
                       const std::function<void(int64_t done, int64_t total)>& progress) {
  const std::string sources = WriteSources(content.sources);
  PackedHeader header =
      PlaceSections(content.layout, sources.size(), content.weights.size(), content.extra.size());
  HEARTH_ASSIGN(DraftFile draft, DraftFile::Create(path, header.file_bytes));
  ChunkWriter writer(draft, header);
  HEARTH_TRY(writer.ZerosUntil(PackedFormat::kHeaderBytes));
  HEARTH_TRY(writer.Append(std::as_bytes(std::span(sources))));
  HEARTH_TRY(writer.ZerosUntil(header.weights_offset));
  constexpr size_t kStep = size_t{64} << 20;
  for (size_t at = 0; at < content.weights.size(); at += kStep) {
    const size_t now = std::min(kStep, content.weights.size() - at);
    HEARTH_TRY(writer.Append(content.weights.subspan(at, now)));
    if (progress) progress(static_cast<int64_t>(at + now), static_cast<int64_t>(header.file_bytes));
  }
  HEARTH_TRY(writer.Append(std::as_bytes(std::span(content.extra))));
  HEARTH_TRY(writer.ZerosUntil(header.hashes_offset));
  HEARTH_TRY(writer.Flush());
  header.hash_of_hashes = HashOf(writer.hashes());
  HEARTH_TRY(draft.WriteAt(header.hashes_offset, writer.hashes()));
  const std::string head = WriteHeader(header);
  HEARTH_TRY(draft.WriteAt(0, std::as_bytes(std::span(head))));
  HEARTH_TRY(draft.Keep());
  if (progress) {
    progress(static_cast<int64_t>(header.file_bytes), static_cast<int64_t>(header.file_bytes));
  }
  return Status();
}

}  // namespace hearth
