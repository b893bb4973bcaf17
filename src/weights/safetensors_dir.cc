// SPDX-License-Identifier: Apache-2.0
#include "weights/safetensors_dir.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "platform/file.h"
#include "weights/safetensors.h"

namespace hearth {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kConfig = "config.json";
// Dimensions and one word per layer need a few KB.
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr size_t kMaxIndexBytes = kMaxSafetensorsHeaderBytes;
// At the usual 5 GB a shard this is 5 TB of weights. Every shard is one mapping of the process.
constexpr size_t kMaxShards = 1024;

std::string Join(const std::string& directory, std::string_view name) {
  return directory + "/" + std::string(name);
}

// A name from an index may only mean a file beside it.
bool IsPlainShardName(std::string_view name) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != '\\'; };
  return name.size() > kSuffix.size() && name.size() <= 255 && name.ends_with(kSuffix) &&
         name.front() != '.' && std::all_of(name.begin(), name.end(), is_plain);
}

Result<Json> ParseObject(const std::string& path, std::string_view text, size_t max_bytes) {
  JsonLimits limits;
  limits.max_bytes = max_bytes;
  // An index spends one value on a tensor, so this leaves the refusal to the count of tensors.
  limits.max_values = 4 * kMaxSafetensorsTensors;
  auto parsed = ParseJson(text, limits);
  if (!parsed.ok())
    return Error(Code::kCorrupt, "%s: %s", path.c_str(),
                 std::move(parsed).status().message().c_str());
  if (parsed->object() == nullptr) {
    return Error(Code::kCorrupt, "%s: expected an object", path.c_str());
  }
  return parsed;
}

Result<Json> ReadObject(const std::string& path, size_t max_bytes) {
  HEARTH_ASSIGN(const std::string text, ReadTextFile(path, max_bytes));
  return ParseObject(path, text, max_bytes);
}

struct Placement {
  std::string tensor, shard;  // shard: a plain name
};

// What the directory says about itself, before any shard is opened.
struct Layout {
  std::string directory;
  std::vector<std::string> shards;              // plain names, sorted
  std::optional<std::vector<Placement>> index;  // sorted by tensor
};

Result<std::vector<Placement>> ReadIndex(const std::string& path) {
  HEARTH_ASSIGN(Json index, ReadObject(path, kMaxIndexBytes));
  const Json* map = index.Find("weight_map");
  if (map == nullptr || map->object() == nullptr) {
    return Error(Code::kCorrupt, "%s: weight_map: expected an object", path.c_str());
  }
  if (map->object()->empty()) {
    return Error(Code::kCorrupt, "%s: weight_map lists no tensors", path.c_str());
  }
  if (map->object()->size() > kMaxSafetensorsTensors) {
    return Error(Code::kUnsupported, "%s: weight_map: %zu tensors, the limit is %zu", path.c_str(),
                 map->object()->size(), kMaxSafetensorsTensors);
  }
  std::vector<Placement> placements;
  placements.reserve(map->object()->size());
  for (const auto& [tensor, shard] : *map->object()) {
    if (shard.string() == nullptr || !IsPlainShardName(*shard.string())) {
      return Error(Code::kCorrupt,
                   "%s: tensor %s: expected the plain name of a .safetensors file, found %s",
                   path.c_str(), Quoted(tensor).c_str(),
                   shard.string() != nullptr ? Quoted(*shard.string()).c_str() : "no string");
    }
    placements.push_back({tensor, *shard.string()});
  }
  std::sort(placements.begin(), placements.end(),
            [](const Placement& a, const Placement& b) { return a.tensor < b.tensor; });
  return placements;
}

// "x-00003-of-00007.safetensors" in parts.
struct NumberedName {
  std::string_view prefix;
  size_t number, count;
};
std::optional<NumberedName> ParseNumberedName(std::string_view name) {
  constexpr std::string_view kPattern = "-NNNNN-of-NNNNN.safetensors";
  if (name.size() <= kPattern.size() || !IsPlainShardName(name)) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kPattern.size());
  size_t numbers[2] = {0, 0};
  for (size_t i = 0; i < kPattern.size(); ++i) {
    if (kPattern[i] != 'N') {
      if (tail[i] != kPattern[i]) return std::nullopt;
    } else {
      if (tail[i] < '0' || tail[i] > '9') return std::nullopt;
      size_t& number = numbers[i < 7 ? 0 : 1];
      number = number * 10 + static_cast<size_t>(tail[i] - '0');
    }
  }
  return NumberedName{name.substr(0, name.size() - kPattern.size()), numbers[0], numbers[1]};
}

// The numbered shards of a directory without an index; none is fine, half a set is not.
Result<std::vector<std::string>> FindNumberedShards(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(directory, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::string name = it->path().filename().string();
    if (ParseNumberedName(name)) names.push_back(std::move(name));
  }
  if (error)
    return Error(Code::kIo, "%s: cannot list: %s", directory.c_str(), error.message().c_str());
  std::sort(names.begin(), names.end());
  for (size_t i = 0; i < names.size(); ++i) {
    const NumberedName first = *ParseNumberedName(names[0]);
    const NumberedName here = *ParseNumberedName(names[i]);
    if (here.prefix != first.prefix || here.count != names.size() || here.number != i + 1) {
      return Error(Code::kCorrupt,
                   "%s: expected %zu shards \"%.*s\" numbered from 1, found %zu with %s as number "
                   "%zu; add an index file",
                   directory.c_str(), first.count, static_cast<int>(first.prefix.size()),
                   first.prefix.data(), names.size(), names[i].c_str(), i + 1);
    }
  }
  return names;
}

Result<Layout> FindLayout(const std::string& directory) {
  Layout layout{directory, {}, std::nullopt};
  const bool has_single = FileExists(Join(directory, kSingle));
  if (FileExists(Join(directory, kIndex))) {
    if (has_single) {
      // Readers disagree on which one wins, so the two could be two different models.
      return Error(Code::kInvalid, "%s: holds both %s and %s; remove one", directory.c_str(),
                   kSingle, kIndex);
    }
    HEARTH_ASSIGN(layout.index, ReadIndex(Join(directory, kIndex)));
    for (const Placement& placement : *layout.index) layout.shards.push_back(placement.shard);
    std::sort(layout.shards.begin(), layout.shards.end());
    layout.shards.erase(std::unique(layout.shards.begin(), layout.shards.end()),
                        layout.shards.end());
  } else if (has_single) {
    layout.shards = {kSingle};
  } else {
    HEARTH_ASSIGN(layout.shards, FindNumberedShards(directory));
  }
  if (layout.shards.size() > kMaxShards) {
    return Error(Code::kUnsupported, "%s: %zu shards; the limit is %zu", directory.c_str(),
                 layout.shards.size(), kMaxShards);
  }
  return layout;
}

// Thread: immutable once open.
class SafetensorsDir final : public WeightFile {
 public:
  static Result<std::unique_ptr<WeightFile>> Open(const Layout& layout);
  static Result<std::unique_ptr<WeightFile>> FromShards(const std::string& name, Json config,
                                                        std::span<const ShardBytes> shards);

  WeightFormat format() const override {
    return Has("block.0.attn.qkv.weight") ? WeightFormat::kOpenAi : WeightFormat::kHuggingFace;
  }
  Result<TensorView> Find(std::string_view name) const override {
    if (const TensorView* view = Look(name)) return *view;
    return Error(Code::kNotFound, "%s: tensor %s not found", directory_.c_str(),
                 Quoted(name).c_str());
  }
  bool Has(std::string_view name) const override { return Look(name) != nullptr; }
  const std::vector<NamedTensor>& tensors() const override { return tensors_; }
  uint64_t file_bytes() const override { return file_bytes_; }
  int num_shards() const override { return static_cast<int>(shards_.size()); }
  const GgufMetadata* metadata() const override { return nullptr; }
  const Json* config() const override { return &config_; }
  void Release(std::span<const std::byte> bytes, bool from_cache) const override {
    for (const Shard& shard : shards_) {
      if (shard.file) shard.file->Release(bytes, from_cache);
    }
  }
  std::vector<ShardBytes> shards() const override {
    std::vector<ShardBytes> shards;
    for (const Shard& shard : shards_) shards.push_back({shard.name, shard.bytes});
    return shards;
  }

 private:
  struct Shard {
    std::string name;
    std::optional<MappedFile> file;  // none when the bytes belong to somebody else
    std::span<const std::byte> bytes;
    std::vector<SafetensorsTensor> tensors;
  };
  struct Located {
    std::string_view name;
    size_t tensor;  // in tensors_
    size_t shard;   // in shards_
  };

  SafetensorsDir(std::string directory, Json config)
      : directory_(std::move(directory)), config_(std::move(config)) {}
  Status Map(const std::vector<std::string>& names);
  Status AddShard(Shard shard);
  Status BuildIndex();
  Status CheckAgainst(const std::vector<Placement>& index) const;
  const TensorView* Look(std::string_view name) const;

  const std::string directory_;
  const Json config_;
  std::vector<Shard> shards_;  // sorted by name
  std::vector<NamedTensor> tensors_;
  // Sorted by name. Not a hash table: the names come from outside, and names chosen to collide
  // would make it quadratic; 16 comparisons find one of 65,536.
  std::vector<Located> by_name_;
  uint64_t file_bytes_ = 0;
  size_t num_tensors_ = 0;
};

Result<std::unique_ptr<WeightFile>> SafetensorsDir::Open(const Layout& layout) {
  Result<Json> config_or = ReadObject(Join(layout.directory, kConfig), kMaxConfigBytes);
  if (config_or.status().code() == Code::kNotFound) {
    return Error(Code::kNotFound, "%s; download the model's %s into the same folder",
                 config_or.status().message().c_str(), kConfig);
  }
  HEARTH_ASSIGN(Json config, std::move(config_or));
  std::unique_ptr<SafetensorsDir> dir(new SafetensorsDir(layout.directory, std::move(config)));
  HEARTH_TRY(dir->Map(layout.shards));
  HEARTH_TRY(dir->BuildIndex());
  if (layout.index) HEARTH_TRY(dir->CheckAgainst(*layout.index));
  return std::unique_ptr<WeightFile>(std::move(dir));
}

Result<std::unique_ptr<WeightFile>> SafetensorsDir::FromShards(const std::string& name, Json config,
                                                               std::span<const ShardBytes> shards) {
  std::unique_ptr<SafetensorsDir> dir(new SafetensorsDir(name, std::move(config)));
  for (const ShardBytes& shard : shards) {
    HEARTH_TRY(dir->AddShard({shard.name, std::nullopt, shard.bytes, {}}));
  }
  HEARTH_TRY(dir->BuildIndex());
  return std::unique_ptr<WeightFile>(std::move(dir));
}

Status SafetensorsDir::Map(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    HEARTH_ASSIGN(MappedFile file, MappedFile::Open(Join(directory_, name)));
    const std::span<const std::byte> bytes = file.bytes();
    HEARTH_TRY(AddShard({name, std::move(file), bytes, {}}));
  }
  return Status();
}

Status SafetensorsDir::AddShard(Shard shard) {
  HEARTH_ASSIGN(Safetensors parsed,
                ParseSafetensors(shard.bytes).Within(Join(directory_, shard.name)));
  num_tensors_ += parsed.tensors.size();
  if (num_tensors_ > kMaxSafetensorsTensors) {
    return Error(Code::kUnsupported, "%s: more than %zu tensors", directory_.c_str(),
                 kMaxSafetensorsTensors);
  }
  file_bytes_ += shard.bytes.size();
  shard.tensors = std::move(parsed.tensors);
  shards_.push_back(std::move(shard));
  return Status();
}

Status SafetensorsDir::BuildIndex() {
  if (num_tensors_ == 0) {
    return Error(Code::kCorrupt, "%s: the %zu files contain no tensors", directory_.c_str(),
                 shards_.size());
  }
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    for (const SafetensorsTensor& tensor : shards_[shard].tensors) {
      by_name_.push_back({tensor.name, tensors_.size(), shard});
      tensors_.push_back({tensor.name, tensor.view});
    }
  }
  std::sort(by_name_.begin(), by_name_.end(), [](const Located& a, const Located& b) {
    return std::tie(a.name, a.shard) < std::tie(b.name, b.shard);
  });
  const auto twin =
      std::adjacent_find(by_name_.begin(), by_name_.end(),
                         [](const Located& a, const Located& b) { return a.name == b.name; });
  if (twin == by_name_.end()) return Status();
  return Error(Code::kCorrupt, "%s: tensor %s is in both %s and %s", directory_.c_str(),
               Quoted(twin->name).c_str(), shards_[twin->shard].name.c_str(),
               shards_[twin[1].shard].name.c_str());
}

Status SafetensorsDir::CheckAgainst(const std::vector<Placement>& index) const {
  auto found = by_name_.begin();
  for (const Placement& expected : index) {
    if (found != by_name_.end() && found->name < expected.tensor) break;
    if (found == by_name_.end() || found->name != expected.tensor) {
      return Error(Code::kCorrupt, "%s/%s: tensor %s: expected by the index, not found",
                   directory_.c_str(), expected.shard.c_str(), Quoted(expected.tensor).c_str());
    }
    if (shards_[found->shard].name != expected.shard) {
      return Error(Code::kCorrupt, "%s: tensor %s: the index expects it in %s, found in %s",
                   directory_.c_str(), Quoted(expected.tensor).c_str(), expected.shard.c_str(),
                   shards_[found->shard].name.c_str());
    }
    ++found;
  }
  if (found == by_name_.end()) return Status();
  return Error(Code::kCorrupt, "%s/%s: tensor %s: not listed in the index", directory_.c_str(),
               shards_[found->shard].name.c_str(), Quoted(found->name).c_str());
}

const TensorView* SafetensorsDir::Look(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [](const Located& a, std::string_view wanted) { return a.name < wanted; });
  if (found == by_name_.end() || found->name != name) return nullptr;
  return &tensors_[found->tensor].tensor;
}

}  // namespace

Result<std::unique_ptr<WeightFile>> OpenSafetensors(const std::string& path) {
  std::string directory = path;
  std::string named;  // the file that stands for its directory
  if (!IsDirectory(path)) {
    if (!FileExists(path)) return Error(Code::kNotFound, "%s: no such file", path.c_str());
    const size_t slash = path.rfind('/');
    named = slash == std::string::npos ? path : path.substr(slash + 1);
    directory = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  }
  HEARTH_ASSIGN(Layout layout, FindLayout(directory));
  const std::string original = Join(directory, "original");
  if (layout.shards.empty() && named.empty() && IsDirectory(original)) {
    HEARTH_ASSIGN(layout, FindLayout(original));
  }
  if (layout.shards.empty()) {
    return Error(Code::kNotFound,
                 "%s: expected %s or %s, found neither; if it holds GGUF files, name one of them",
                 directory.c_str(), kSingle, kIndex);
  }
  if (!named.empty() && !std::binary_search(layout.shards.begin(), layout.shards.end(), named)) {
    return Error(Code::kInvalid, "%s does not belong to the checkpoint in its directory",
                 path.c_str());
  }
  return SafetensorsDir::Open(layout);
}

Result<std::unique_ptr<WeightFile>> OpenSafetensorsShards(const std::string& name,
                                                          std::string_view config,
                                                          std::span<const ShardBytes> shards) {
  HEARTH_ASSIGN(Json parsed, ParseObject(name + ": " + kConfig, config, kMaxConfigBytes));
  return SafetensorsDir::FromShards(name, std::move(parsed), shards);
}

}  // namespace hearth
