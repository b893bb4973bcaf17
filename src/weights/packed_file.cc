// SPDX-License-Identifier: Apache-2.0
#include "weights/packed_file.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "weights/gguf_file.h"
#include "weights/safetensors_dir.h"

namespace hearth {
namespace {

constexpr std::string_view kConfig = "config.json";
// The one tensor that belongs to a model's description (model/describe_gguf.cc).
constexpr std::string_view kDescribing[] = {"rope_freqs.weight"};

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool Contains(std::span<const std::byte> outer, std::span<const std::byte> inner) {
  return inner.data() >= outer.data() && inner.data() < outer.data() + outer.size();
}

PackedSource SourceOfShard(const WeightFile& file, const ShardBytes& shard) {
  PackedSource source;
  source.kind = file.format() == WeightFormat::kGguf ? PackedSource::Kind::kGguf
                                                     : PackedSource::Kind::kSafetensors;
  source.name = shard.name;
  source.size = shard.bytes.size();
  const auto offset_of = [&](const NamedTensor& named) {
    return static_cast<uint64_t>(named.tensor.bytes.data() - shard.bytes.data());
  };
  uint64_t first = shard.bytes.size();
  std::vector<PackedSource::Piece> kept;
  for (const NamedTensor& named : file.tensors()) {
    if (named.tensor.bytes.empty() || !Contains(shard.bytes, named.tensor.bytes)) continue;
    first = std::min(first, offset_of(named));
    if (std::find(std::begin(kDescribing), std::end(kDescribing), named.name) !=
        std::end(kDescribing)) {
      kept.push_back({offset_of(named), named.tensor.bytes});
    }
  }
  source.pieces.push_back({0, shard.bytes.first(first)});
  source.pieces.insert(source.pieces.end(), kept.begin(), kept.end());
  return source;
}

}  // namespace

Result<std::vector<PackedSource>> SourcesOf(const WeightFile& file,
                                            std::span<const NamedText> texts) {
  std::vector<PackedSource> sources;
  for (const ShardBytes& shard : file.shards()) sources.push_back(SourceOfShard(file, shard));
  if (sources.empty()) return Error(Code::kInvalid, "the model is already a packed file");
  for (const NamedText& named : texts) {
    const auto bytes = std::as_bytes(std::span(named.text.data(), named.text.size()));
    sources.push_back({PackedSource::Kind::kText, named.name, named.text.size(), {{0, bytes}}});
  }
  return sources;
}

Result<std::unique_ptr<PackedFile>> PackedFile::Open(const std::string& path) {
  HEARTH_ASSIGN(MappedFile map, MappedFile::Open(path));
  map.PreferHugePages();
  std::unique_ptr<PackedFile> file(new PackedFile(path, map.bytes()));
  file->map_.emplace(std::move(map));
  HEARTH_TRY(file->Read().Within(path));
  return file;
}

Result<std::unique_ptr<PackedFile>> PackedFile::FromBytes(const std::string& path,
                                                          std::span<const std::byte> bytes) {
  std::unique_ptr<PackedFile> file(new PackedFile(path, bytes));
  HEARTH_TRY(file->Read().Within(path));
  return file;
}

Status PackedFile::Read() {
  HEARTH_ASSIGN(header_, ReadHeader(bytes_));
  const ChunkHash actual = HashOf(bytes_.subspan(header_.hashes_offset));
  if (actual != header_.hash_of_hashes) {
    return Error(Code::kCorrupt, "hashes: expected hash %s, found %s",
                 HexOf(header_.hash_of_hashes).c_str(), HexOf(actual).c_str());
  }
  for (uint64_t chunk = 0; header_.chunk_begin(chunk) < header_.weights_offset; ++chunk) {
    HEARTH_TRY(CheckFileChunk(chunk));
  }
  HEARTH_ASSIGN(sources_,
                ReadSources(bytes_.subspan(PackedFormat::kHeaderBytes, header_.sources_bytes)));
  return OpenInner();
}

// The checkpoint's own readers meet its own headers, at the offsets they had, with nothing behind.
Status PackedFile::OpenInner() {
  std::vector<ShardBytes> shards;
  const PackedSource::Kind kind = sources_.front().kind;
  for (const PackedSource& source : sources_) {
    if (source.kind == PackedSource::Kind::kText) continue;
    if (source.kind != kind || source.size == 0) {
      return Error(Code::kCorrupt, "source %s does not match the other sources",
                   source.name.c_str());
    }
    HEARTH_ASSIGN(SparseBytes bytes, SparseBytes::Make(source.size).Within(source.name));
    for (const PackedSource::Piece& piece : source.pieces) {
      HEARTH_TRY(bytes.Fill(piece.offset, piece.bytes));
    }
    shards.push_back({source.name, bytes.bytes()});
    shards_.push_back(std::move(bytes));
  }
  if (shards.empty())
    return Error(Code::kCorrupt, "the packed file does not describe its checkpoint");
  if (kind == PackedSource::Kind::kGguf) {
    HEARTH_ASSIGN(inner_, OpenGgufShards(shards));
    return Status();
  }
  const std::optional<std::string_view> config = Text(kConfig);
  if (!config) return Error(Code::kCorrupt, "expected config.json in the packed file, found none");
  HEARTH_ASSIGN(inner_, OpenSafetensorsShards("packed", *config, shards));
  return Status();
}

std::optional<std::string_view> PackedFile::Text(std::string_view name) const {
  for (const PackedSource& source : sources_) {
    if (source.kind == PackedSource::Kind::kText && source.name == name) {
      return TextOf(source.pieces.front().bytes);
    }
  }
  return std::nullopt;
}

int PackedFile::num_chunks() const {
  const uint64_t first = header_.weights_offset / PackedFormat::kChunkBytes;
  return static_cast<int>(header_.num_chunks() - first);
}

Status PackedFile::CheckChunk(int chunk) const {
  const uint64_t first = header_.weights_offset / PackedFormat::kChunkBytes;
  return CheckFileChunk(first + static_cast<uint64_t>(chunk)).Within(path_);
}

Status PackedFile::CheckFileChunk(uint64_t chunk) const {
  const uint64_t begin = header_.chunk_begin(chunk), end = header_.chunk_end(chunk);
  ChunkHash expected;
  std::memcpy(&expected, &bytes_[header_.hashes_offset + chunk * sizeof expected], sizeof expected);
  const ChunkHash actual = HashOf(bytes_.subspan(begin, end - begin));
  if (actual == expected) return Status();
  return Error(Code::kCorrupt,
               "chunk %" PRIu64 " (bytes %" PRIu64 " to %" PRIu64 "): expected hash %s, found %s",
               chunk, begin, end, HexOf(expected).c_str(), HexOf(actual).c_str());
}

}  // namespace hearth
