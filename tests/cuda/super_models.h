// SPDX-License-Identifier: Apache-2.0
// Families in miniature whose weights are K-quants or formats of small blocks: rows of 256 columns,
// formats mixed as files of quantisers have them.
#pragma once
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "proof/inputs.h"
#include "testing/random_weights.h"
#include "testing/tiny_models.h"
namespace hearth::cuda {

// The types of GGUF files.
constexpr uint32_t kTypeF32 = 0, kTypeQ4_0 = 2, kTypeQ4_1 = 3, kTypeQ5_0 = 6, kTypeQ5_1 = 7,
                   kTypeIq4Nl = 20, kTypeQ8_0 = 8, kTypeQ2K = 10, kTypeQ3K = 11, kTypeQ4K = 12,
                   kTypeQ5K = 13, kTypeQ6K = 14, kTypeIq4Xs = 23;

// Which tensor gets which type: the first entry that its name contains.
using TypesByName = std::vector<std::pair<const char*, uint32_t>>;

// As Q4_K_M has them.
inline const TypesByName kMixedQ4K = {{"norm", kTypeF32},          {"attn_v", kTypeQ6K},
                                      {"ffn_down", kTypeQ6K},      {"token_embd", kTypeQ4K},
                                      {"output.weight", kTypeQ6K}, {"", kTypeQ4K}};
// Everything else, with Q8_0 among them: both kinds of strips are read in one layer.
inline const TypesByName kMixedRest = {
    {"norm", kTypeF32},       {"gate_inp", kTypeF32}, {"attn_q", kTypeQ5K},
    {"attn_k", kTypeQ8_0},    {"attn_v", kTypeQ3K},   {"attn_output", kTypeQ2K},
    {"ffn_gate", kTypeIq4Xs}, {"ffn_up", kTypeQ8_0},  {"ffn_down", kTypeQ2K},
    {"token_embd", kTypeQ5K}, {"", kTypeQ3K}};

// Formats of small blocks.
inline const TypesByName kMixedBlocks = {
    {"norm", kTypeF32},        {"gate_inp", kTypeF32}, {"attn_q", kTypeQ4_0},
    {"attn_k", kTypeQ4_1},     {"attn_v", kTypeQ5_0},  {"attn_output", kTypeQ5_1},
    {"ffn_gate", kTypeIq4Nl},  {"ffn_up", kTypeQ4_0},  {"ffn_down", kTypeQ5_1},
    {"token_embd", kTypeQ5_0}, {"", kTypeQ4_1}};

// 4 heads of 64 on 2 KV heads, 256 wide everywhere.
inline testing::GgufBuilder WideModel(const std::string& arch, const TypesByName& types) {
  testing::GgufBuilder b = testing::TinyModel(arch);
  for (const char* key : {".embedding_length", ".feed_forward_length"}) {
    testing::SetNumber(b, arch + key, 256);
  }
  for (const char* key : {".attention.key_length", ".attention.value_length"}) {
    testing::SetNumber(b, arch + key, 64);
  }
  if (arch == "qwen3moe") testing::SetNumber(b, arch + ".expert_feed_forward_length", 256);
  for (auto& tensor : b.tensors) {
    // 32 is the model's width or that of the heads, 64 of the feed-forward, 16 of K and V, 8 of a
    // head.
    const bool is_norm = tensor.name.find("norm") != std::string::npos;
    for (uint64_t& size : tensor.ne) {
      if (size == 32 || size == 64) size = 256;
      if (size == 16) size = 128;
      if (size == 8 && is_norm) size = 64;
    }
    for (const auto& [part, type] : types) {
      if (tensor.name.find(part) == std::string::npos) continue;
      tensor.type = type;
      break;
    }
  }
  return b;
}

inline DType DTypeOfGguf(uint32_t type) {
  static const std::map<uint32_t, DType> known = {
      {kTypeQ8_0, DType::kQ8_0},   {kTypeQ2K, DType::kQ2_K},  {kTypeQ3K, DType::kQ3_K},
      {kTypeQ4K, DType::kQ4_K},    {kTypeQ5K, DType::kQ5_K},  {kTypeQ6K, DType::kQ6_K},
      {kTypeIq4Xs, DType::kIq4Xs}, {kTypeQ4_0, DType::kQ4_0}, {kTypeQ4_1, DType::kQ4_1},
      {kTypeQ5_0, DType::kQ5_0},   {kTypeQ5_1, DType::kQ5_1}, {kTypeIq4Nl, DType::kIq4Nl}};
  return known.at(type);
}

// Any codes and scales, with factors that give weights of a model's size.
inline std::string RandomSupers(const testing::GgufBuilder& b, uint32_t seed) {
  std::mt19937 random(seed);
  return testing::FilledWeights(
      b, [&](const testing::GgufBuilder::Tensor& tensor, char* data, size_t size) {
        if (tensor.type == kTypeF32) {
          for (size_t i = 0; i < size; i += 4) {
            const float value = testing::RandomWeight(tensor, random);
            std::memcpy(data + i, &value, sizeof value);
          }
          return;
        }
        const DType dtype = DTypeOfGguf(tensor.type);
        const auto each = static_cast<size_t>(BlockShapeOf(dtype).bytes);
        for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>(random());
        for (size_t i = 0; i < size; i += each) {
          for (const size_t at : proof::FactorsOf(dtype)) {
            const auto factor = static_cast<uint16_t>(0x0a00 + random() % 0x400);  // about 2^-13
            std::memcpy(data + i + at, &factor, 2);
          }
        }
      });
}

}  // namespace hearth::cuda
