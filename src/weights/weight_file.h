// SPDX-License-Identifier: Apache-2.0
// A checkpoint on disk, seen as named tensors and a description of the model.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

// One file of a checkpoint: its plain name and its bytes as they are mapped.
struct ShardBytes {
  std::string name;
  std::span<const std::byte> bytes;
};

// Weights as a backend once arranged them for itself, kept in a file (packed_file.h).
// Thread: immutable; CheckChunk may run on many threads.
class PackedWeights {
 public:
  virtual ~PackedWeights() = default;
  virtual uint32_t layout() const = 0;  // which arrangement; the backend knows
  virtual std::span<const std::byte> weights() const = 0;
  // Where they lie on disk, for who reads them there; empty when they are in no file.
  virtual std::string path() const = 0;
  virtual uint64_t weights_offset() const = 0;
  // What else the backend keeps; only it knows what the bytes mean.
  virtual std::span<const std::byte> extra() const = 0;
  // Both lie in chunks that have a hash each. Nothing was compared yet; kCorrupt names the file,
  // the chunk and both hashes.
  virtual uint64_t chunk_bytes() const = 0;
  virtual int num_chunks() const = 0;
  virtual Status CheckChunk(int chunk) const = 0;
};

// Views stay valid for the life of the object: the bytes are mapped, not copied.
// Thread: immutable once open; share freely.
class WeightFile {
 public:
  // `path` is a .gguf file (the first of a split set stands for all), a Hugging Face directory, a
  // directory in OpenAI's original layout, or what `hearth pack` made of one of these. A
  // .safetensors file stands for its directory.
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
  virtual std::vector<ShardBytes> shards() const = 0;
  // A text that stood beside the checkpoint under this name and that the file keeps: packed ones
  // do.
  virtual std::optional<std::string_view> Text(std::string_view) const { return std::nullopt; }
  // Null for a checkpoint. When there are packed weights, tensors have names, formats and shapes,
  // but no bytes that may be read.
  virtual const PackedWeights* packed() const { return nullptr; }
  // The bytes of a tensor were copied: their pages may go, and with `from_cache` also from the
  // operating system's cache. They stay readable. Thread: any.
  virtual void Release(std::span<const std::byte> bytes, bool from_cache) const = 0;
};

}  // namespace hearth
