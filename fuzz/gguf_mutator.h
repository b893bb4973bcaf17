// SPDX-License-Identifier: Apache-2.0
// Changes GGUF files by their fields: a well-formed file is taken apart, edited, given a lie or
// two, and written again; a malformed one gets one field overwritten where it lies.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "testing/gguf_builder.h"
#include "weights/gguf.h"
namespace hearth::fuzzing {

using testing::GgufBuilder;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  size_t Below(size_t limit) { return static_cast<size_t>(Next() % limit); }
  bool OneIn(size_t n) { return Below(n) == 0; }
  template <class T>
  auto& Of(T& values) {
    return *(std::begin(values) + static_cast<std::ptrdiff_t>(Below(std::size(values))));
  }

 private:
  uint64_t state_;
};

// A number that a parser may get wrong.
inline uint64_t OddNumber(Random& random) {
  static constexpr uint64_t kOdd[] = {
      0,          1,          2,          3,        4,          5,          7,          8,
      13,         31,         32,         33,       64,         255,        256,        4096,
      65535,      65536,      65537,      1u << 20, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32,
      1ull << 61, 1ull << 62, 1ull << 63, ~0ull,    ~31ull};
  const uint64_t number = random.Of(kOdd);
  return random.OneIn(4) ? number + random.Below(5) - 2 : number;
}

inline std::string ValueOf(uint32_t type, Random& random);

inline std::string ArrayOf(Random& random) {
  const auto element = static_cast<uint32_t>(random.Below(14));
  const size_t count = random.Below(5);
  std::string elements;
  for (size_t i = 0; i < count; ++i) {
    if (element != 9) elements += ValueOf(element, random);
  }
  const uint64_t claimed = random.OneIn(4) ? OddNumber(random) : count;
  return testing::RawArray(static_cast<GgufType>(element), claimed, elements);
}

inline std::string ValueOf(uint32_t type, Random& random) {
  static constexpr const char* kTexts[] = {"",         "a",    "llama",  "gpt-oss", "gptoss",
                                           "qwen3moe", "yarn", "linear", "\xff\xfe"};
  if (type == 9) return ArrayOf(random);
  if (type == 8) {
    return random.OneIn(8) ? testing::Raw(OddNumber(random))
                           : testing::RawString(random.Of(kTexts));
  }
  if (type == 7) return std::string(1, static_cast<char>(random.Below(3)));
  if (type == 6) return testing::Raw(static_cast<float>(random.Below(1000)) / 7.0f);
  const std::string number = testing::Raw(random.OneIn(2) ? OddNumber(random) : random.Below(64));
  return number.substr(0, std::max<size_t>(1, SizeOf(static_cast<GgufType>(type))));
}

// Takes a parsed file apart. Tensor data is not kept: the parser never looks at it.
inline GgufBuilder TakeApart(const Gguf& gguf) {
  GgufBuilder builder;
  builder.version = gguf.version;
  builder.alignment = gguf.alignment;
  for (const auto& [name, value] : gguf.metadata.entries()) {
    std::string bytes(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    if (value.type == GgufType::kArray) {
      bytes = testing::RawArray(value.element, value.count, bytes);
    }
    builder.AddRaw(std::string(name), value.type, std::move(bytes));
  }
  for (const auto& [name, view] : gguf.tensors) {
    uint32_t id = 0;
    for (const auto& type : testing::kGgufTypeIds) {
      if (type.dtype == view.dtype) id = type.id;
    }
    std::vector<uint64_t> ne(view.shape.begin(), view.shape.begin() + view.rank);
    std::reverse(ne.begin(), ne.end());
    builder.AddTensor(std::string(name), std::move(ne), id);
  }
  return builder;
}

inline void EditKey(GgufBuilder& builder, Random& random) {
  const auto type = static_cast<uint32_t>(random.Below(13));
  if (builder.keys.empty() || random.OneIn(6)) {
    builder.AddRaw("k" + std::to_string(random.Below(100)), static_cast<GgufType>(type),
                   ValueOf(type, random));
    return;
  }
  GgufBuilder::Key& key = random.Of(builder.keys);
  switch (random.Below(7)) {
    case 0:
      key.type = static_cast<uint32_t>(random.OneIn(2) ? OddNumber(random) : type);
      break;
    case 1:
      key.type = type;
      key.value = ValueOf(type, random);
      break;
    case 2:
      key.value = ValueOf(key.type, random);
      break;
    case 3:
      key.name_length = OddNumber(random);
      break;
    case 4:
      if (!key.name.empty()) random.Of(key.name) = static_cast<char>(random.Next());
      break;
    case 5:
      builder.keys.push_back(GgufBuilder::Key(key));
      if (random.OneIn(2)) builder.keys.back().name += "x";
      break;
    default:
      builder.keys.erase(builder.keys.begin() + (&key - builder.keys.data()));
  }
}

inline void EditTensor(GgufBuilder& builder, Random& random) {
  const uint32_t type = random.Of(testing::kGgufTypeIds).id;
  if (builder.tensors.empty() || random.OneIn(6)) {
    builder.AddTensor("t" + std::to_string(random.Below(100)), {random.Below(4) * 32, 1}, type);
    return;
  }
  GgufBuilder::Tensor& tensor = random.Of(builder.tensors);
  switch (random.Below(10)) {
    case 0:
      tensor.type = random.OneIn(4) ? static_cast<uint32_t>(OddNumber(random)) : type;
      break;
    case 1:
      tensor.offset = random.OneIn(2) ? OddNumber(random) : random.Below(16) * 32;
      break;
    case 2:
      tensor.name_length = OddNumber(random);
      break;
    case 3:
      tensor.rank = static_cast<uint32_t>(OddNumber(random));
      break;
    case 4:
      tensor.data_bytes = random.Below(256);
      break;
    case 5:
      tensor.ne.push_back(random.OneIn(2) ? 1 : OddNumber(random));
      break;
    case 6:
      if (!tensor.name.empty()) random.Of(tensor.name) = static_cast<char>(random.Next());
      break;
    case 7:
      std::swap(tensor, random.Of(builder.tensors));
      break;
    case 8:
      builder.tensors.erase(builder.tensors.begin() + (&tensor - builder.tensors.data()));
      break;
    default:
      if (!tensor.ne.empty()) {
        random.Of(tensor.ne) = random.OneIn(2) ? OddNumber(random) : random.Below(8) * 32;
      }
  }
}

inline void EditHead(GgufBuilder& builder, Random& random) {
  switch (random.Below(5)) {
    case 0:
      builder.num_keys = OddNumber(random);
      break;
    case 1:
      builder.num_tensors = OddNumber(random);
      break;
    case 2:
      builder.version = static_cast<uint32_t>(OddNumber(random));
      break;
    case 3:
      builder.num_cut = random.Below(64);
      break;
    default: {
      const auto alignment = static_cast<uint32_t>(OddNumber(random));
      builder.Add("general.alignment", GgufType::kU32, alignment);
      if (alignment >= 8 && alignment <= 4096 && random.OneIn(2)) builder.alignment = alignment;
    }
  }
}

// Shapes that were edited may ask for more data than a fuzz input can hold: write less then.
inline std::string WriteAtMost(GgufBuilder& builder, size_t max_size) {
  for (GgufBuilder::Tensor& tensor : builder.tensors) {
    if (GgufBuilder::DataBytes(tensor) > max_size) tensor.data_bytes = 32;
  }
  std::string bytes = builder.Build();
  if (bytes.size() > max_size) bytes.resize(max_size);
  return bytes;
}

inline std::string EditFields(GgufBuilder builder, size_t max_size, Random& random) {
  const size_t num_edits = 1 + random.Below(3);
  for (size_t i = 0; i < num_edits; ++i) {
    const size_t where = random.Below(8);
    if (where < 3) EditKey(builder, random);
    if (where >= 3 && where < 7) EditTensor(builder, random);
    if (where == 7) EditHead(builder, random);
  }
  return WriteAtMost(builder, max_size);
}

// Overwrites one 4- or 8-byte number with an odd one. Numbers are not aligned, but in a small file
// a random place is a field often enough.
inline void OverwriteNumber(uint8_t* data, size_t size, Random& random) {
  if (size < 32) return;
  const uint64_t number = OddNumber(random);
  const size_t width = random.OneIn(2) ? 4 : 8;
  std::memcpy(data + random.Below(size - width), &number, width);
}

}  // namespace hearth::fuzzing
