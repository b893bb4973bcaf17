// SPDX-License-Identifier: Apache-2.0
#include "weights/gguf_file.h"

#include <cinttypes>
#include <map>
#include <optional>
#include <utility>

#include "platform/file.h"

namespace hearth {
namespace {

constexpr const char* kInMemory = "GGUF in memory";

// What a file says about the set it belongs to.
struct Split {
  uint64_t number = 0;  // from 0
  uint64_t count = 1;
  uint64_t num_tensors = 0;  // of the whole set
};

Result<uint64_t> RequiredUnsigned(const GgufMetadata& metadata, const char* key) {
  const GgufValue* value = metadata.Find(key);
  if (value == nullptr) {
    return Error(Code::kCorrupt, "%s: missing, although split.count is present", key);
  }
  if (const auto number = value->Unsigned()) return *number;
  return Error(Code::kCorrupt, "%s: expected an unsigned integer, found %s%s", key,
               value->Integer() ? "a negative " : "", NameOf(value->type));
}

Result<Split> SplitOf(const Gguf& gguf) {
  Split split;
  split.num_tensors = gguf.tensors.size();
  if (gguf.metadata.Find("split.count") == nullptr) return split;
  HEARTH_ASSIGN(split.count, RequiredUnsigned(gguf.metadata, "split.count"));
  HEARTH_ASSIGN(split.number, RequiredUnsigned(gguf.metadata, "split.no"));
  // The format stores both in 16 bits; more could not be named by five digits anyway.
  constexpr uint64_t kMaxShards = 65535;
  if (split.count < 1 || split.count > kMaxShards) {
    return Error(Code::kCorrupt, "split.count is %" PRIu64 ", expected 1 to %" PRIu64, split.count,
                 kMaxShards);
  }
  if (split.number >= split.count) {
    return Error(Code::kCorrupt, "split.no is %" PRIu64 ", expected less than split.count %" PRIu64,
                 split.number, split.count);
  }
  HEARTH_ASSIGN(split.num_tensors, RequiredUnsigned(gguf.metadata, "split.tensors.count"));
  return split;
}

std::string ShardSuffix(uint64_t number, uint64_t count) {
  return Printf("-%05" PRIu64 "-of-%05" PRIu64 ".gguf", number + 1, count);
}

class GgufFile final : public WeightFile {
 public:
  static Result<std::unique_ptr<WeightFile>> Open(const std::string& path);
  static Result<std::unique_ptr<WeightFile>> FromShards(std::span<const ShardBytes> shards);

  WeightFormat format() const override { return WeightFormat::kGguf; }
  Result<TensorView> Find(std::string_view name) const override;
  bool Has(std::string_view name) const override { return index_.contains(name); }
  const std::vector<NamedTensor>& tensors() const override { return tensors_; }
  uint64_t file_bytes() const override { return file_bytes_; }
  int num_shards() const override { return static_cast<int>(paths_.size()); }
  const GgufMetadata* metadata() const override { return &metadata_; }
  const Json* config() const override { return nullptr; }
  std::vector<ShardBytes> shards() const override {
    std::vector<ShardBytes> shards;
    for (const MappedFile& map : maps_) {
      shards.push_back({map.path().substr(map.path().rfind('/') + 1), map.bytes()});
    }
    return shards;
  }
  void Release(std::span<const std::byte> bytes, bool from_cache) const override {
    for (const MappedFile& map : maps_) map.Release(bytes, from_cache);
  }

 private:
  explicit GgufFile(std::string path) { paths_.push_back(std::move(path)); }
  Status OpenSet(const Split& first);
  Status CheckCount(const Split& first) const;
  Status OpenShard(const std::string& path, uint64_t number, const Split& first);
  Status AddShard(const std::string& path, std::span<const std::byte> bytes, uint64_t number,
                  const Split& first);
  Status AddTensors(const Gguf& gguf);

  struct Place {
    size_t tensor;  // in tensors_
    size_t shard;   // in paths_
  };
  std::vector<std::string> paths_;  // of the shards, in order
  std::vector<MappedFile> maps_;    // the same; none when the bytes belong to somebody else
  uint64_t file_bytes_ = 0;
  GgufMetadata metadata_;  // the first file's; the others of a set repeat nothing but split.*
  std::vector<NamedTensor> tensors_;
  std::map<std::string_view, Place> index_;
};

Result<std::unique_ptr<WeightFile>> GgufFile::Open(const std::string& path) {
  HEARTH_ASSIGN(MappedFile map, MappedFile::Open(path));
  auto gguf = ParseGguf(map.bytes());
  if (!gguf.ok()) return std::move(gguf).status().Within(path);
  auto split = SplitOf(*gguf);
  if (!split.ok()) return std::move(split).status().Within(path);
  std::unique_ptr<GgufFile> file(new GgufFile(path));
  file->file_bytes_ = map.bytes().size();
  file->maps_.push_back(std::move(map));
  HEARTH_TRY(file->AddTensors(*gguf));
  file->metadata_ = std::move(gguf->metadata);
  if (Status status = file->OpenSet(*split); !status.ok()) return std::move(status).Within(path);
  return std::unique_ptr<WeightFile>(std::move(file));
}

Result<std::unique_ptr<WeightFile>> GgufFile::FromShards(std::span<const ShardBytes> shards) {
  const ShardBytes& head = shards.front();
  HEARTH_ASSIGN(Gguf gguf, ParseGguf(head.bytes).Within(head.name));
  HEARTH_ASSIGN(const Split split, SplitOf(gguf).Within(head.name));
  if (split.count != shards.size()) {
    return Error(Code::kUnsupported, "%s: one of a split set of %" PRIu64 " files",
                 head.name.c_str(), split.count);
  }
  std::unique_ptr<GgufFile> file(new GgufFile(head.name));
  file->file_bytes_ = head.bytes.size();
  HEARTH_TRY(file->AddTensors(gguf));
  file->metadata_ = std::move(gguf.metadata);
  for (size_t i = 1; i < shards.size(); ++i) {
    HEARTH_TRY(file->AddShard(shards[i].name, shards[i].bytes, i, split));
  }
  HEARTH_TRY(file->CheckCount(split).Within(head.name));
  return std::unique_ptr<WeightFile>(std::move(file));
}

// The first file is in already; opens the others, whose names follow from its own.
Status GgufFile::OpenSet(const Split& first) {
  const std::string path = paths_.front();
  if (first.count > 1) {
    const std::string suffix = ShardSuffix(first.number, first.count);
    if (!path.ends_with(suffix)) {
      return Error(Code::kInvalid,
                   "file %" PRIu64 " of a split set of %" PRIu64
                   ": expected a name that ends in \"%s\"",
                   first.number + 1, first.count, suffix.c_str());
    }
    const std::string prefix = path.substr(0, path.size() - suffix.size());
    if (first.number != 0) {
      return Error(Code::kInvalid, "file %" PRIu64 " of a split set of %" PRIu64 ": open %s%s",
                   first.number + 1, first.count, prefix.c_str(),
                   ShardSuffix(0, first.count).c_str());
    }
    for (uint64_t i = 1; i < first.count; ++i) {
      HEARTH_TRY(OpenShard(prefix + ShardSuffix(i, first.count), i, first));
    }
  }
  return CheckCount(first);
}

Status GgufFile::CheckCount(const Split& first) const {
  if (tensors_.size() == first.num_tensors) return Status();
  return Error(Code::kCorrupt,
               "split.tensors.count is %" PRIu64 ", but the %zu files hold %zu tensors",
               first.num_tensors, paths_.size(), tensors_.size());
}

Status GgufFile::OpenShard(const std::string& path, uint64_t number, const Split& first) {
  HEARTH_ASSIGN(MappedFile map, MappedFile::Open(path));
  const std::span<const std::byte> bytes = map.bytes();
  maps_.push_back(std::move(map));
  return AddShard(path, bytes, number, first);
}

Status GgufFile::AddShard(const std::string& path, std::span<const std::byte> bytes,
                          uint64_t number, const Split& first) {
  auto gguf = ParseGguf(bytes);
  if (!gguf.ok()) return std::move(gguf).status().Within(path);
  auto split = SplitOf(*gguf);
  if (!split.ok()) return std::move(split).status().Within(path);
  if (split->number != number || split->count != first.count ||
      split->num_tensors != first.num_tensors) {
    return Error(Code::kCorrupt,
                 "%s: expected file %" PRIu64 " of %" PRIu64 " with %" PRIu64
                 " tensors in all (split.no, split.count, split.tensors.count), found file %" PRIu64
                 " of %" PRIu64 " with %" PRIu64,
                 path.c_str(), number + 1, first.count, first.num_tensors, split->number + 1,
                 split->count, split->num_tensors);
  }
  file_bytes_ += bytes.size();
  paths_.push_back(path);
  return AddTensors(*gguf);
}

Status GgufFile::AddTensors(const Gguf& gguf) {
  const size_t shard = paths_.size() - 1;
  tensors_.reserve(tensors_.size() + gguf.tensors.size());
  for (const GgufTensor& tensor : gguf.tensors) {
    const auto [found, added] = index_.emplace(tensor.name, Place{tensors_.size(), shard});
    if (!added) {
      return Error(Code::kCorrupt, "%s: tensor %s is already in %s", paths_[shard].c_str(),
                   Quoted(tensor.name).c_str(), paths_[found->second.shard].c_str());
    }
    tensors_.push_back({tensor.name, tensor.view});
  }
  return Status();
}

Result<TensorView> GgufFile::Find(std::string_view name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return tensors_[found->second.tensor].tensor;
  return Error(Code::kNotFound, "%s: tensor %s not found among %zu tensors", paths_.front().c_str(),
               Quoted(name).c_str(), tensors_.size());
}

}  // namespace

Result<std::unique_ptr<WeightFile>> OpenGguf(const std::string& path) {
  return GgufFile::Open(path);
}

Result<std::unique_ptr<WeightFile>> OpenGgufBytes(std::span<const std::byte> bytes) {
  const ShardBytes only{kInMemory, bytes};
  return GgufFile::FromShards({&only, 1});
}

Result<std::unique_ptr<WeightFile>> OpenGgufShards(std::span<const ShardBytes> shards) {
  return GgufFile::FromShards(shards);
}

}  // namespace hearth
