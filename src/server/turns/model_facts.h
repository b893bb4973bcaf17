// SPDX-License-Identifier: Apache-2.0
// What a model is, for those who list and compare models. Only told, never computed with.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
namespace hearth {

// What is not known is empty or 0.
struct ModelFacts {
  std::string family;        // "llama"
  std::string format;        // "gguf" or "safetensors"
  std::string quantisation;  // the format of most of the weights' bytes: "Q8_0"
  // 64 hexadecimal digits that tell this file from others on this machine: of its name, size, time
  // and tensors. No hash of its bytes, which would read gigabytes at every start.
  std::string digest;
  std::string license, chat_template;
  int64_t num_parameters = 0, file_bytes = 0;
  int64_t modified_s = 0;  // seconds since 1970
  bool can_call_tools = false, can_think = false;
  std::vector<std::pair<std::string, int64_t>> shape;  // under GGUF's names: "block_count"
};

// Ollama's clients write NAME:latest for a name without a tag.
inline bool IsSameModel(std::string_view asked, std::string_view served) {
  const auto bare = [](std::string_view name) {
    constexpr std::string_view kTag = ":latest";
    return name.ends_with(kTag) ? name.substr(0, name.size() - kTag.size()) : name;
  };
  return bare(asked) == bare(served);
}

}  // namespace hearth
