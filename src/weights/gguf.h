// SPDX-License-Identifier: Apache-2.0
// The GGUF container (versions 2 and 3), validated before anything is believed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"
namespace hearth {

enum class GgufType : uint8_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
const char* NameOf(GgufType type);
size_t SizeOf(GgufType type);  // bytes of one value; 0 for strings and arrays

// What Hearth accepts. Real files stay far below; the limits bound time and memory on hostile ones.
struct GgufLimits {
  static constexpr uint64_t kMaxTensors = 65536;
  static constexpr uint64_t kMaxKeys = 65536;
  static constexpr uint64_t kMaxKeyBytes = 65535;  // the format's own limit
  static constexpr uint64_t kMaxNameBytes = 255;   // of a tensor; ggml itself stops at 63
  // A whole tokenizer.json may stand in one string (27 MB for o200k); chat templates are below
  // 1 MiB. Strings are views, so a long one costs nothing until somebody copies it.
  static constexpr uint64_t kMaxStringBytes = uint64_t{32} << 20;
  static constexpr uint64_t kMaxElementBytes = uint64_t{1} << 20;  // a string inside an array
  // Everything before the tensor data. gpt-oss's vocabulary and merges take 13 MB.
  static constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;
  static constexpr uint64_t kMinAlignment = 8, kMaxAlignment = 4096;
};

// One metadata value: a borrowed look into the file. Every accessor is total and answers none when
// the value is of another type or does not fit.
class GgufValue {
 public:
  GgufType type = GgufType::kU8;     // of the value, or kArray
  GgufType element = GgufType::kU8;  // of an array's elements; never kArray
  uint64_t count = 1;                // elements of an array, else 1
  std::span<const std::byte> bytes;  // the value; of a string or a string array with lengths

  std::optional<std::string_view> String() const;
  std::optional<uint64_t> Unsigned() const;  // any integer type, when not negative
  std::optional<int64_t> Integer() const;
  std::optional<double> Number() const;  // any integer or float type
  std::optional<bool> Bool() const;
  // Arrays are read in one pass; the file was checked, so nothing here can fail half-way.
  std::optional<std::vector<std::string_view>> Strings() const;
  std::optional<std::vector<double>> Numbers() const;
  std::optional<std::vector<int64_t>> Integers() const;
  std::optional<std::vector<bool>> Bools() const;
};

// Keys in file order. A tree and not a hash table finds them: no choice of keys makes it slow.
// Thread: immutable once filled.
class GgufMetadata {
 public:
  const GgufValue* Find(std::string_view key) const;
  const std::vector<std::pair<std::string_view, GgufValue>>& entries() const { return entries_; }
  void Reserve(size_t num_keys) { entries_.reserve(num_keys); }
  // False when the key is there already.
  bool Add(std::string_view key, const GgufValue& value);

 private:
  std::vector<std::pair<std::string_view, GgufValue>> entries_;
  std::map<std::string_view, size_t> index_;
};

struct GgufTensor {
  std::string_view name;
  TensorView view;
};

// One parsed file. Names, values and tensors are views into the bytes given to ParseGguf.
struct Gguf {
  uint32_t version = 0;
  uint64_t alignment = 32;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in file order
};

// Checks everything that can be checked without reading tensor data: counts against the bytes
// left, every string, type, shape and extent against the real size, names for duplicates, extents
// to follow each other without gap or overlap, as the format's own writer lays them. Bytes after
// the last tensor are ignored. Takes time in proportion to the header, and never allocates more
// than a small multiple of the header's bytes.
Result<Gguf> ParseGguf(std::span<const std::byte> file);
// How many times this process has called it. A vocabulary makes parsing a matter of a tenth of a
// second, so a start should parse each file once; tests hold it to that. Thread: any.
int64_t NumGgufParses();

// The number that stands for a built-in format in a file; none for formats that GGUF does not have.
std::optional<uint32_t> GgufTypeId(DType dtype);

// Files may use `id` from now on for tensors of a format that was added (tensor/block_format.h).
// The id must be free. Thread: one, before any file is parsed.
void AddGgufType(uint32_t id, DType dtype);

}  // namespace hearth
