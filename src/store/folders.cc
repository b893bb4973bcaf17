// SPDX-License-Identifier: Apache-2.0
#include "store/folders.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace hearth {
namespace {

// Every symlink followed; empty when something on the way is missing.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : std::string();
}

}  // namespace

bool IsPlainName(std::string_view name) {
  constexpr size_t kMaxBytes = 255;  // NAME_MAX of every common file system
  if (name.empty() || name.size() > kMaxBytes || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return c != '/' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  });
}

std::vector<std::string> NamesIn(const std::string& folder, size_t max_names) {
  std::vector<std::string> names;
  const auto close = [](DIR* dir) { ::closedir(dir); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(folder.c_str()), close);
  if (!dir) return names;
  while (names.size() < max_names) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (!name.starts_with('.') && IsPlainName(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<FoundFile> FileWithin(const std::string& root, const std::string& folder,
                                    std::string_view name) {
  const std::string path = folder + "/" + std::string(name);
  const std::string real_root = RealPath(root), real = RealPath(path);
  if (real_root.empty() || !real.starts_with(real_root + (real_root == "/" ? "" : "/"))) {
    return std::nullopt;
  }
  struct stat info;
  if (::stat(real.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FoundFile{path, static_cast<uint64_t>(info.st_size)};
}

}  // namespace hearth
