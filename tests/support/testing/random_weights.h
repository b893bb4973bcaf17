// SPDX-License-Identifier: Apache-2.0
// A GGUF file whose weights are random, about as large as a model's are.
#pragma once
#include <cstring>
#include <random>
#include <string>

#include "testing/gguf_builder.h"
namespace hearth::testing {

// Around 1 for norms, around 0 for the others.
inline float RandomWeight(const GgufBuilder::Tensor& tensor, std::mt19937& random) {
  const bool is_norm = tensor.name.find("norm") != std::string::npos;
  return static_cast<float>(random() % 2001) / 2000.0f - 0.5f + is_norm;
}

// The file with each tensor's data written by `fill(tensor, data, size)`.
template <class Fill>
std::string FilledWeights(const GgufBuilder& b, const Fill& fill) {
  std::string bytes = b.Build();
  const auto padded = [&](size_t size) { return (size + b.alignment - 1) & ~(b.alignment - 1); };
  size_t at = padded(b.Header().size());
  for (const GgufBuilder::Tensor& tensor : b.tensors) {
    const size_t size = GgufBuilder::DataBytes(tensor);
    fill(tensor, &bytes[at], size);
    at = padded(at + size);
  }
  return bytes;
}

// Tensors must be F32 or MXFP4.
inline std::string RandomWeights(const GgufBuilder& b, uint32_t seed) {
  std::mt19937 random(seed);
  return FilledWeights(b, [&](const GgufBuilder::Tensor& tensor, char* data, size_t size) {
    for (size_t i = 0; i < size; i += tensor.type == 39 ? 17 : 4) {
      if (tensor.type == 39) {
        data[i] = static_cast<char>(122 + random() % 3);
        for (size_t j = 1; j < 17; ++j) data[i + j] = static_cast<char>(random());
      } else {
        const float value = RandomWeight(tensor, random);
        std::memcpy(data + i, &value, sizeof(value));
      }
    }
  });
}

}  // namespace hearth::testing
