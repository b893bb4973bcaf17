// SPDX-License-Identifier: Apache-2.0
// A packed file opened as a checkpoint, and written. Its layout is packed_format.h.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/file.h"
#include "platform/memory.h"
#include "weights/packed_format.h"
#include "weights/weight_file.h"
namespace hearth {

// Describes itself as the checkpoint it was made from does, because it keeps that one's headers;
// its tensors have no bytes. Opening checks the header, the hashes' own hash and the sources; the
// weights are checked chunk by chunk by who loads them.
class PackedFile final : public WeightFile, public PackedWeights {
 public:
  static Result<std::unique_ptr<PackedFile>> Open(const std::string& path);
  // Bytes that are in memory already and outlive the result; `path` is for messages.
  static Result<std::unique_ptr<PackedFile>> FromBytes(const std::string& path,
                                                       std::span<const std::byte> bytes);

  // A text that was kept whole: tokenizer.json, chat_template.jinja, ...
  std::optional<std::string_view> Text(std::string_view name) const override;

  WeightFormat format() const override { return inner_->format(); }
  Result<TensorView> Find(std::string_view name) const override { return inner_->Find(name); }
  bool Has(std::string_view name) const override { return inner_->Has(name); }
  const std::vector<NamedTensor>& tensors() const override { return inner_->tensors(); }
  uint64_t file_bytes() const override { return bytes_.size(); }
  int num_shards() const override { return 1; }
  const GgufMetadata* metadata() const override { return inner_->metadata(); }
  const Json* config() const override { return inner_->config(); }
  std::vector<ShardBytes> shards() const override { return {}; }
  const PackedWeights* packed() const override { return this; }
  void Release(std::span<const std::byte> bytes, bool from_cache) const override {
    if (map_) map_->Release(bytes, from_cache);
  }

  uint32_t layout() const override { return header_.layout; }
  std::string path() const override { return map_ ? path_ : ""; }
  uint64_t weights_offset() const override { return header_.weights_offset; }
  std::span<const std::byte> weights() const override {
    return bytes_.subspan(header_.weights_offset, header_.weights_bytes);
  }
  std::span<const std::byte> extra() const override {
    return bytes_.subspan(header_.weights_offset + header_.weights_bytes, header_.extra_bytes);
  }
  uint64_t chunk_bytes() const override { return PackedFormat::kChunkBytes; }
  int num_chunks() const override;
  Status CheckChunk(int chunk) const override;

 private:
  PackedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes) {}
  Status Read();
  Status CheckFileChunk(uint64_t chunk) const;
  Status OpenInner();

  std::string path_;
  std::optional<MappedFile> map_;
  std::span<const std::byte> bytes_;
  PackedHeader header_;
  std::vector<PackedSource> sources_;
  std::vector<SparseBytes> shards_;
  std::unique_ptr<WeightFile> inner_;
};

// What is kept of a checkpoint: of its shards everything before the tensors, and those few tensors
// that describe the model; its config.json; and `texts`, whole, under their names.
struct NamedText {
  std::string name, text;
};
Result<std::vector<PackedSource>> SourcesOf(const WeightFile& file,
                                            std::span<const NamedText> texts);

// Writes everything to a draft beside `path` and puts it there in one step. kIo when the disk is
// full, and then nothing is left behind.
struct PackedContent {
  uint32_t layout = 0;
  std::span<const PackedSource> sources;
  std::span<const std::byte> weights;
  std::string_view extra;
};
Status WritePackedFile(const std::string& path, const PackedContent& content,
                       const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace hearth
