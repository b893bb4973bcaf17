// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files in memory, for tests and fuzzing. Every field that the format derives from
// others (counts, lengths, offsets) can be overridden with a lie.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/tensor.h"
#include "weights/gguf.h"
namespace hearth::testing {

// A number as the file stores it.
template <class T>
std::string Raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}
inline std::string RawString(std::string_view text) {
  return Raw(uint64_t{text.size()}) + std::string(text);
}
inline std::string RawArray(GgufType element, uint64_t count, std::string_view elements) {
  return Raw(static_cast<uint32_t>(element)) + Raw(count) + std::string(elements);
}

// The tensor types by the number GGUF gives them.
struct GgufTypeId {
  uint32_t id;
  DType dtype;
  uint64_t elems, bytes;  // of a block
};
inline constexpr GgufTypeId kGgufTypeIds[] = {
    {0, DType::kF32, 1, 4},        {1, DType::kF16, 1, 2},       {2, DType::kQ4_0, 32, 18},
    {3, DType::kQ4_1, 32, 20},     {6, DType::kQ5_0, 32, 22},    {7, DType::kQ5_1, 32, 24},
    {8, DType::kQ8_0, 32, 34},     {10, DType::kQ2_K, 256, 84},  {11, DType::kQ3_K, 256, 110},
    {12, DType::kQ4_K, 256, 144},  {13, DType::kQ5_K, 256, 176}, {14, DType::kQ6_K, 256, 210},
    {16, DType::kIq2Xxs, 256, 66}, {20, DType::kIq4Nl, 32, 18},  {23, DType::kIq4Xs, 256, 136},
    {24, DType::kI8, 1, 1},        {25, DType::kI16, 1, 2},      {26, DType::kI32, 1, 4},
    {27, DType::kI64, 1, 8},       {28, DType::kF64, 1, 8},      {30, DType::kBf16, 1, 2},
    {39, DType::kMxfp4, 32, 17},
};

struct GgufBuilder {
  struct Key {
    std::string name;
    uint32_t type = 0;
    std::string value;                    // as it lies in the file, after the type
    std::optional<uint64_t> name_length;  // the lie
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> ne;  // innermost first, as the file says it
    uint32_t type = 0;
    std::optional<uint64_t> offset, name_length, data_bytes;  // the lies
    std::optional<uint32_t> rank;
  };

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;
  std::optional<uint64_t> num_keys, num_tensors;  // the lies
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::string tail;    // after everything
  size_t num_cut = 0;  // bytes to leave off at the end

  GgufBuilder& AddRaw(std::string name, GgufType type, std::string value) {
    keys.push_back({std::move(name), static_cast<uint32_t>(type), std::move(value), {}});
    return *this;
  }
  template <class T>
  GgufBuilder& Add(std::string name, GgufType type, T value) {
    return AddRaw(std::move(name), type, Raw(value));
  }
  GgufBuilder& AddString(std::string name, std::string_view text) {
    return AddRaw(std::move(name), GgufType::kString, RawString(text));
  }
  GgufBuilder& AddStrings(std::string name, const std::vector<std::string>& texts) {
    std::string elements;
    for (const std::string& text : texts) elements += RawString(text);
    return AddRaw(std::move(name), GgufType::kArray,
                  RawArray(GgufType::kString, texts.size(), elements));
  }
  GgufBuilder& AddSplit(uint16_t number, uint16_t count, int32_t num_in_all) {
    Add("split.no", GgufType::kU16, number);
    Add("split.count", GgufType::kU16, count);
    return Add("split.tensors.count", GgufType::kI32, num_in_all);
  }
  GgufBuilder& AddTensor(std::string name, std::vector<uint64_t> ne, uint32_t type = 0) {
    tensors.push_back({std::move(name), std::move(ne), type, {}, {}, {}, {}});
    return *this;
  }

  // What the tensor's data takes; 0 for a type nobody knows. Wraps like any careless program, so
  // that files with absurd shapes can be written at all.
  static uint64_t DataBytes(const Tensor& tensor) {
    if (tensor.data_bytes) return *tensor.data_bytes;
    for (const GgufTypeId& known : kGgufTypeIds) {
      if (known.id != tensor.type) continue;
      uint64_t num_elements = 1;
      for (const uint64_t size : tensor.ne) num_elements *= size;
      return num_elements / known.elems * known.bytes;
    }
    return 0;
  }

  std::string Header() const {
    std::string out = magic + Raw(version);
    out += Raw(num_tensors.value_or(tensors.size())) + Raw(num_keys.value_or(keys.size()));
    for (const Key& key : keys) {
      out += Raw(key.name_length.value_or(key.name.size())) + key.name + Raw(key.type) + key.value;
    }
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors) {
      out += Raw(tensor.name_length.value_or(tensor.name.size())) + tensor.name;
      out += Raw(tensor.rank.value_or(static_cast<uint32_t>(tensor.ne.size())));
      for (const uint64_t size : tensor.ne) out += Raw(size);
      out += Raw(tensor.type) + Raw(tensor.offset.value_or(offset));
      offset = Padded(offset + DataBytes(tensor));
    }
    return out;
  }

  // The data of tensor i is all bytes 'a' + i % 26; padding is zero.
  std::string Build() const {
    std::string out = Header();
    for (size_t i = 0; i < tensors.size(); ++i) {
      out.resize(Padded(out.size()), '\0');
      out.append(DataBytes(tensors[i]), static_cast<char>('a' + i % 26));
    }
    out.resize(Padded(out.size()), '\0');
    out += tail;
    out.resize(out.size() - std::min(num_cut, out.size()));
    return out;
  }

 private:
  uint64_t Padded(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }
};

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace hearth::testing
