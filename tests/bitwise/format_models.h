// SPDX-License-Identifier: Apache-2.0
// Small models, dense and with experts, whose matrices are all in one weight format.
#pragma once
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/num.h"
#include "testing/gguf_builder.h"
#include "testing/kernels.h"
#include "testing/tiny_models.h"

namespace hearth::testing {

inline constexpr DType kFastFormats[] = {DType::kF32,  DType::kF16,   DType::kBf16,  DType::kQ4_0,
                                         DType::kQ4_1, DType::kQ5_0,  DType::kQ5_1,  DType::kQ8_0,
                                         DType::kQ2_K, DType::kQ3_K,  DType::kQ4_K,  DType::kQ5_K,
                                         DType::kQ6_K, DType::kIq4Nl, DType::kIq4Xs, DType::kMxfp4};

struct FormatModel {
  static constexpr uint32_t kModel = 256, kFfn = 512, kHeads = 4, kKvHeads = 2, kHead = 64,
                            kVocab = 96;
  static constexpr uint32_t kExperts = 6;

  static uint32_t IdOf(DType dtype) {
    for (const GgufTypeId& known : kGgufTypeIds) {
      if (known.dtype == dtype) return known.id;
    }
    return 0;
  }

  static GgufBuilder Shape(const std::string& arch, uint32_t type) {
    const bool moe = arch == "qwen3moe";
    GgufBuilder b;
    b.AddString("general.architecture", arch);
    AddNumber(b, arch + ".block_count", 2);
    AddNumber(b, arch + ".context_length", 256);
    AddNumber(b, arch + ".embedding_length", kModel);
    AddNumber(b, arch + ".feed_forward_length", kFfn);
    AddNumber(b, arch + ".attention.head_count", kHeads);
    AddNumber(b, arch + ".attention.head_count_kv", kKvHeads);
    AddNumber(b, arch + ".attention.key_length", kHead);
    AddNumber(b, arch + ".attention.value_length", kHead);
    b.Add(arch + ".attention.layer_norm_rms_epsilon", GgufType::kF32, 1e-6f);
    if (moe) {
      AddNumber(b, arch + ".expert_count", kExperts);
      AddNumber(b, arch + ".expert_used_count", 2);
      AddNumber(b, arch + ".expert_feed_forward_length", kFfn);
    }
    b.AddTensor("token_embd.weight", {kModel, kVocab}, type);
    b.AddTensor("output_norm.weight", {kModel});
    b.AddTensor("output.weight", {kModel, kVocab}, type);
    for (int layer = 0; layer < 2; ++layer) {
      const std::string p = "blk." + std::to_string(layer) + ".";
      b.AddTensor(p + "attn_norm.weight", {kModel});
      b.AddTensor(p + "attn_q.weight", {kModel, kHeads * kHead}, type);
      b.AddTensor(p + "attn_k.weight", {kModel, kKvHeads * kHead}, type);
      b.AddTensor(p + "attn_v.weight", {kModel, kKvHeads * kHead}, type);
      b.AddTensor(p + "attn_output.weight", {kHeads * kHead, kModel}, type);
      b.AddTensor(p + "ffn_norm.weight", {kModel});
      if (moe) {
        b.AddTensor(p + "attn_q_norm.weight", {kHead});
        b.AddTensor(p + "attn_k_norm.weight", {kHead});
        b.AddTensor(p + "ffn_gate_inp.weight", {kModel, kExperts});
        b.AddTensor(p + "ffn_gate_exps.weight", {kModel, kFfn, kExperts}, type);
        b.AddTensor(p + "ffn_up_exps.weight", {kModel, kFfn, kExperts}, type);
        b.AddTensor(p + "ffn_down_exps.weight", {kFfn, kModel, kExperts}, type);
      } else {
        b.AddTensor(p + "ffn_gate.weight", {kModel, kFfn}, type);
        b.AddTensor(p + "ffn_up.weight", {kModel, kFfn}, type);
        b.AddTensor(p + "ffn_down.weight", {kFfn, kModel}, type);
      }
    }
    return b;
  }

  // Random codes under factors that keep activations near one.
  static std::string DataOf(const GgufBuilder::Tensor& tensor, DType dtype, std::mt19937& random) {
    std::string data(GgufBuilder::DataBytes(tensor), '\0');
    std::normal_distribution<float> normal(0.0f, 0.06f);
    const BlockShape shape = BlockShapeOf(dtype);
    for (size_t at = 0; at < data.size(); at += static_cast<size_t>(shape.bytes)) {
      const float value = tensor.ne.size() == 1 ? 1.0f + normal(random) : normal(random);
      const uint16_t f16 = F16FromF32(value), bf16 = Bf16FromF32(value);
      if (dtype == DType::kF32) std::memcpy(&data[at], &value, 4);
      if (dtype == DType::kF16) std::memcpy(&data[at], &f16, 2);
      if (dtype == DType::kBf16) std::memcpy(&data[at], &bf16, 2);
      if (shape.elems == 1) continue;
      for (int i = 0; i < shape.bytes; ++i) {
        data[at + static_cast<size_t>(i)] = static_cast<char>(random());
      }
      if (dtype == DType::kMxfp4) data[at] = static_cast<char>(118 + random() % 6);
      // About 0.06 over the format's largest integer weights: 2^-8 for nibbles, 2^-13 for K-quants.
      const uint16_t factor = shape.elems == 256 ? 0x0800 : 0x1800;
      // IQ2_XXS, which has no kernel, begins with its one factor.
      const auto places = dtype == DType::kIq2Xxs ? std::vector<size_t>{0} : FactorsOf(dtype);
      for (const size_t place : places) {
        const auto jittered = static_cast<uint16_t>(factor + random() % 0x400);
        std::memcpy(&data[at + place], &jittered, 2);
      }
    }
    return data;
  }

  static std::string Build(const std::string& arch, DType dtype, uint32_t seed) {
    const GgufBuilder b = Shape(arch, IdOf(dtype));
    std::mt19937 random(seed);
    std::string out = b.Header();
    const auto pad = [&out] { out.resize((out.size() + 31) / 32 * 32, '\0'); };
    for (const GgufBuilder::Tensor& tensor : b.tensors) {
      pad();
      out += DataOf(tensor, tensor.type == 0 ? DType::kF32 : dtype, random);
    }
    pad();
    return out;
  }
};

}  // namespace hearth::testing
