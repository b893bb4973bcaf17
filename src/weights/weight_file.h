// SPDX-License-Identifier: Apache-2.0
// A checkpoint on disk, seen as named tensors and a description of the model.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tensor/tensor.h"
#include "weights/gguf.h"
namespace hearth {

enum class WeightFormat : uint8_t { kGguf, kHuggingFace, kOpenAi };
const char* NameOf(WeightFormat format);

struct NamedTensor {
  std::string_view name;
  TensorView tensor;
};

// Views stay valid for the life of the object: the bytes are mapped, not copied.
// Thread: immutable once open; share freely.
class WeightFile {
 public:
  // `path` is a .gguf file (the first of a split set stands for all), a Hugging Face directory, or
  // a directory in OpenAI's original layout. A .safetensors file stands for its directory.
  static Result<std::unique_ptr<WeightFile>> Open(const std::string& path);
  virtual ~WeightFile() = default;
  virtual WeightFormat format() const = 0;
  // Errors name the file and the tensor.
  virtual Result<TensorView> Find(std::string_view name) const = 0;
  virtual bool Has(std::string_view name) const = 0;
  virtual const std::vector<NamedTensor>& tensors() const = 0;  // in file order
  virtual uint64_t file_bytes() const = 0;                      // all shards together
  virtual int num_shards() const = 0;
  // The description: GGUF's metadata, or config.json. Exactly one is non-null.
  virtual const GgufMetadata* metadata() const = 0;
  virtual const Json* config() const = 0;
};

}  // namespace hearth
