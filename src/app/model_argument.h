// SPDX-License-Identifier: Apache-2.0
// What people call a model on the command line: a path, or the name of one on this machine.
#pragma once
#include <string>

#include "base/result.h"
#include "store/places.h"
namespace hearth {

struct ModelArgument {
  std::string path;
  std::string name;  // as given, when a name was given; else empty
};

// A path wins: what is on the disk under `given` is meant, even if a model has that name. A folder
// with one GGUF model in it stands for that. kNotFound and kInvalid say what would work instead.
// Nothing is opened but folders, manifests, and files too small to be a model.
Result<ModelArgument> FindModelArgument(const std::string& given);
Result<ModelArgument> FindModelArgument(const std::string& given, const Environment& environment);

// The path alone.
Result<std::string> ModelPath(const std::string& given);

}  // namespace hearth
