// SPDX-License-Identifier: Apache-2.0
// Looking into folders that somebody else wrote: bounded, and never out of the folder.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

// The names in a folder without those that start with a dot, sorted; at most `max_names` of them.
// Empty when there is no such folder or it may not be read.
std::vector<std::string> NamesIn(const std::string& folder, size_t max_names = 10000);

struct FoundFile {
  std::string path;  // as it was asked for, so that its name says what it is
  uint64_t bytes = 0;
};

// `folder` + "/" + `name`, when that is a regular file and lies below `root` once every symlink is
// followed. Stores of content-addressed blobs are made of symlinks; one that leads out of the store
// is not part of it.
std::optional<FoundFile> FileWithin(const std::string& root, const std::string& folder,
                                    std::string_view name);

// A plain name of a file or folder: not empty, no slash, no control bytes, not "." or "..", at most
// 255 bytes.
bool IsPlainName(std::string_view name);

}  // namespace hearth
