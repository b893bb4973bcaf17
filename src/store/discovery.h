// SPDX-License-Identifier: Apache-2.0
// Models that other programs have on this machine, found in the layouts of their stores and used in
// place. Nothing here writes. What does not look right is not listed: it may be half downloaded.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
namespace hearth {

enum class Origin : unsigned char { kOwn, kOllama, kHuggingFace, kLmStudio };
const char* NameOf(Origin origin);

struct StoredModel {
  std::string name{};  // what commands take
  Origin origin = Origin::kOwn;
  std::string path{};  // what opens it
  uint64_t bytes = 0;
  // For models that are files of a repository; else empty.
  std::string repo{}, revision{}, quant{}, file{};
  bool is_complete = true;  // Hearth's own may be half downloaded
};

// manifests/HOST/NAMESPACE/MODEL/TAG name layers by digest; the layer of the model is a GGUF file
// in blobs/. Named MODEL:TAG, NAMESPACE/MODEL:TAG outside the library.
std::vector<StoredModel> FindOllamaModels(const std::string& root);

// models--OWNER--REPO/snapshots/COMMIT/FILE are symlinks into blobs/; refs/ names the commits of
// branches. The snapshot is that of main, else the latest there is. Named OWNER/REPO:QUANT.
std::vector<StoredModel> FindHuggingFaceModels(const std::string& root);

// OWNER/REPO/FILE.gguf. Named OWNER/REPO:QUANT.
std::vector<StoredModel> FindLmStudioModels(const std::string& root);

}  // namespace hearth
