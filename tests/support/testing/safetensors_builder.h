// SPDX-License-Identifier: Apache-2.0
// Writes safetensors files for tests, sound ones and, piece by piece, unsound ones.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace hearth::testing {

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Eight bytes, least significant first.
inline std::string LittleEndian64(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// The container around any header and data, sound or not.
inline std::string SafetensorsFile(std::string_view header, std::string_view data) {
  return LittleEndian64(header.size()) + std::string(header) + std::string(data);
}

// Any number of texts as one.
template <class... Texts>
std::string Concat(const Texts&... texts) {
  std::string all;
  (all.append(std::string_view(texts)), ...);
  return all;
}

// One header entry, `"name":{...}`; shape and offsets are the JSON text inside the brackets.
inline std::string SafetensorsEntry(std::string_view name, std::string_view dtype,
                                    std::string_view shape, std::string_view offsets) {
  return Concat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[", shape,
                "],\"data_offsets\":[", offsets, "]}");
}

// Lays tensors one behind the other, as the format demands.
class SafetensorsBuilder {
 public:
  SafetensorsBuilder& Add(std::string_view name, std::string_view dtype,
                          const std::vector<int64_t>& shape, std::string_view bytes) {
    std::string dims;
    for (const int64_t dim : shape)
      dims.append(dims.empty() ? "" : ",").append(std::to_string(dim));
    AddText(SafetensorsEntry(
        name, dtype, dims,
        Concat(std::to_string(data_.size()), ",", std::to_string(data_.size() + bytes.size()))));
    data_ += bytes;
    return *this;
  }
  // Any member of the header as JSON text.
  SafetensorsBuilder& AddText(std::string_view member) {
    header_.append(header_.empty() ? "" : ",").append(member);
    return *this;
  }
  std::string Build() const { return SafetensorsFile(Concat("{", header_, "}"), data_); }

 private:
  std::string header_, data_;
};

}  // namespace hearth::testing
