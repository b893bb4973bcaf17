// SPDX-License-Identifier: Apache-2.0
// The files that a model is made of, by their names alone: found before the server confines itself,
// and so before anything of the model is parsed.
#pragma once
#include <string>
#include <vector>

namespace hearth {

struct ModelFiles {
  std::vector<std::string> files;    // those that are there, sorted
  std::vector<std::string> folders;  // whose names are listed to find weights; sorted
};

// Of a GGUF file: it, and the other parts of a split set. Of a packed file: it. Of a folder, or a
// .safetensors file in one: its weights and the texts that this program reads beside them. Nothing
// else that lies there, other models least of all.
ModelFiles ModelFilesOf(const std::string& model);

}  // namespace hearth
