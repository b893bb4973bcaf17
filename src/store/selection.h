// SPDX-License-Identifier: Apache-2.0
// Which models a list of files holds, and which of them was meant: a repository often has one model
// in twenty quantisations, some of them in several files.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

struct ListedFile {
  std::string path{};  // inside the repository or folder
  uint64_t bytes = 0;
};

// One model among the files.
struct ModelFiles {
  std::string stem{};           // file name without ".gguf" and shard number; empty for a directory
  std::string quant{};          // such as Q4_K_M, in capitals; empty when the name does not say
  std::vector<size_t> files{};  // which of the list: a GGUF set in the order of its shards
  uint64_t bytes = 0;
  bool is_directory = false;  // safetensors with their configuration and tokenizer
};

// Every whole model: a GGUF file, a GGUF set of which no shard is missing, or the safetensors at
// the top with config.json. Projectors of vision models and importance matrices are not models.
std::vector<ModelFiles> ModelsAmong(std::span<const ListedFile> files);

// The one that `selector` means: a path, a file's name with or without its end, or a quantisation,
// in any case. An empty one means the only model, else the usual quantisation (UsualQuants), else
// the directory. kNotFound lists what there is; `where` is for the message.
Result<ModelFiles> ChooseModel(std::span<const ListedFile> files,
                               std::span<const ModelFiles> models, std::string_view selector,
                               std::string_view where);

// What is taken when nobody says: the first of these that there is. Four bits lose little, and
// half of the memory is twice the speed.
std::span<const std::string_view> UsualQuants();

// The last part of a path.
std::string_view BaseName(std::string_view path);

}  // namespace hearth
