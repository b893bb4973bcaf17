// SPDX-License-Identifier: Apache-2.0
// Where models lie on this machine: Hearth's own store, and the stores of other programs.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "platform/user_folders.h"
namespace hearth {

// Folders, whether they exist or not. None ends with a slash.
struct StorePlaces {
  std::string own;                     // Hearth's: the only one that is ever written
  std::vector<std::string> ollama;     // hold manifests/ and blobs/
  std::string hugging_face;            // holds models--OWNER--REPO folders
  std::vector<std::string> lm_studio;  // hold OWNER/REPO/*.gguf
};

// kInvalid when neither HEARTH_MODELS nor a home is known.
Result<StorePlaces> FindPlaces(const Environment& environment);

}  // namespace hearth
