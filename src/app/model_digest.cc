// SPDX-License-Identifier: Apache-2.0
#include "app/model_digest.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "app/model_files.h"
#include "kv/block_key.h"
#include "platform/chunk_hash.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{8} << 20;

Result<uint64_t> DigestOfFile(const std::string& path, uint64_t seed, std::span<char> buffer) {
  std::ifstream in(path, std::ios::binary);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto size = static_cast<size_t>(in.gcount());
    seed = FoldSeed(seed, size);
    if (size == 0) break;
    for (const uint32_t part : HashOf(std::as_bytes(buffer.first(size)))) {
      seed = FoldSeed(seed, part);
    }
  }
  if (!in.eof()) return Error(Code::kIo, "cannot read %s", path.c_str());
  return seed;
}

}  // namespace

Result<std::vector<std::string>> FilesOf(const Model& model, const std::string& path) {
  std::vector<std::string> files;
  const std::string folder = fs::path(path).parent_path().string();
  if (fs::is_directory(path) || path.ends_with(".safetensors")) {
    files = ModelFilesOf(path).files;  // what a confined server can read
  } else if (model.file != nullptr && model.file->num_shards() > 1) {
    for (const ShardBytes& shard : model.file->shards()) {
      files.push_back((fs::path(folder) / shard.name).string());
    }
  }
  if (files.empty()) files.push_back(path);
  std::ranges::sort(files);
  return files;
}

Result<std::string> IdentityOf(const std::vector<std::string>& files) {
  uint64_t identity = 0;
  for (const std::string& path : files) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) {
      return Error(Code::kIo, "%s: %s", path.c_str(),
                   std::error_code(errno, std::generic_category()).message().c_str());
    }
    for (const auto part :
         {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino),
          static_cast<uint64_t>(info.st_size), static_cast<uint64_t>(info.st_mtim.tv_sec),
          static_cast<uint64_t>(info.st_mtim.tv_nsec), static_cast<uint64_t>(info.st_ctim.tv_sec),
          static_cast<uint64_t>(info.st_ctim.tv_nsec)}) {
      identity = FoldSeed(identity, part);
    }
    for (const char c : fs::path(path).filename().string()) {
      identity = FoldSeed(identity, static_cast<unsigned char>(c));
    }
  }
  return Printf("%016llx", static_cast<unsigned long long>(identity));
}

Result<uint64_t> DigestOf(const std::vector<std::string>& files) {
  const auto buffer = std::make_unique<char[]>(kPieceBytes);
  uint64_t digest = files.size();
  for (const std::string& path : files) {
    HEARTH_ASSIGN(digest, DigestOfFile(path, digest, std::span(buffer.get(), kPieceBytes)));
  }
  return digest;
}

}  // namespace hearth
