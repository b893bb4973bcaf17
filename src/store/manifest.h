// SPDX-License-Identifier: Apache-2.0
// What Hearth notes about a model in its store, as the file hearth.json beside the model's files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

struct ManifestFile {
  std::string name{};  // in the model's folder
  uint64_t bytes = 0;
  std::string
      digest{};  // "sha256:..." or "git:..." as the source gives it; empty when it gives none
};

struct Manifest {
  std::string name{};
  std::string repo{}, revision{}, selector{};  // of the Hub, or
  std::string url{};                           // of anywhere
  std::string licence{};                       // as the source states it
  bool is_complete = false;                    // false: a download that was begun
  bool is_directory = false;                   // the folder is the model; else its first file
  std::vector<ManifestFile> files{};

  uint64_t bytes() const;
  // What can be given to `hearth pull` to have it again.
  std::string source() const;
};

inline constexpr std::string_view kManifestName = "hearth.json";

// kCorrupt says what is wrong: the file may have been edited. kUnsupported: a newer version wrote
// it.
Result<Manifest> ParseManifest(std::string_view text);
std::string WriteManifest(const Manifest& manifest);

}  // namespace hearth
