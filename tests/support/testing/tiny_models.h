// SPDX-License-Identifier: Apache-2.0
// The smallest well-formed GGUF file of each family, for tests that then break one thing.
#pragma once
#include <string>

#include "testing/gguf_builder.h"
namespace hearth::testing {

inline GgufBuilder& AddNumber(GgufBuilder& builder, const std::string& key, uint32_t value) {
  return builder.Add(key, GgufType::kU32, value);
}

inline void AddShape(GgufBuilder& b, const std::string& arch) {
  b.AddString("general.architecture", arch);
  AddNumber(b, arch + ".block_count", 2);
  AddNumber(b, arch + ".context_length", 64);
  AddNumber(b, arch + ".embedding_length", 32);
  AddNumber(b, arch + ".feed_forward_length", 64);
  AddNumber(b, arch + ".attention.head_count", 4);
  AddNumber(b, arch + ".attention.head_count_kv", 2);
  AddNumber(b, arch + ".attention.key_length", 8);
  AddNumber(b, arch + ".attention.value_length", 8);
  b.Add(arch + ".attention.layer_norm_rms_epsilon", GgufType::kF32, 1e-6f);
}

inline void AddAttention(GgufBuilder& b, const std::string& p, bool bias, bool qk_norm) {
  b.AddTensor(p + "attn_norm.weight", {32});
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    const uint64_t rows = std::string(name) == "attn_q" ? 32 : 16;
    b.AddTensor(p + name + ".weight", {32, rows});
    if (bias) b.AddTensor(p + name + ".bias", {rows});
  }
  if (qk_norm) {
    b.AddTensor(p + "attn_q_norm.weight", {8});
    b.AddTensor(p + "attn_k_norm.weight", {8});
  }
  b.AddTensor(p + "attn_output.weight", {32, 32});
}

inline void AddExperts(GgufBuilder& b, const std::string& p, bool bias) {
  b.AddTensor(p + "ffn_gate_inp.weight", {32, 4});
  if (bias) b.AddTensor(p + "ffn_gate_inp.bias", {4});
  for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    const bool down = std::string(name) == "ffn_down_exps";
    const uint64_t rows = down ? 32 : 64, cols = down ? 64 : 32;
    b.AddTensor(p + name + ".weight", {cols, rows, 4}, bias ? 39 : 0);
    if (bias) b.AddTensor(p + name + ".bias", {rows, 4});
  }
}

// d_model 32, 4 heads of 8 on 2 KV heads, d_ff 64, 48 tokens, 2 layers; MoE: 4 experts, 2 active.
inline GgufBuilder TinyModel(const std::string& arch) {
  const bool gpt_oss = arch == "gpt-oss" || arch == "gptoss";
  const bool moe = gpt_oss || arch == "qwen3moe";
  GgufBuilder b;
  AddShape(b, arch);
  if (moe) {
    AddNumber(b, arch + ".expert_count", 4);
    AddNumber(b, arch + ".expert_used_count", 2);
    AddNumber(b, arch + ".expert_feed_forward_length", 64);
  }
  if (gpt_oss) {
    AddNumber(b, arch + ".attention.sliding_window", 8);
    b.AddString(arch + ".rope.scaling.type", "yarn");
    b.Add(arch + ".rope.scaling.factor", GgufType::kF32, 4.0f);
    AddNumber(b, arch + ".rope.scaling.original_context_length", 16);
  }
  b.AddTensor("token_embd.weight", {32, 48});
  b.AddTensor("output_norm.weight", {32});
  b.AddTensor("output.weight", {32, 48});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string p = "blk." + std::to_string(layer) + ".";
    AddAttention(b, p, gpt_oss || arch == "qwen2", arch == "qwen3" || arch == "qwen3moe");
    if (gpt_oss) {
      b.AddTensor(p + "attn_output.bias", {32});
      b.AddTensor(p + "attn_sinks.weight", {4});
    }
    b.AddTensor(p + (gpt_oss ? "post_attention_norm.weight" : "ffn_norm.weight"), {32});
    if (moe) {
      AddExperts(b, p, gpt_oss);
    } else {
      b.AddTensor(p + "ffn_gate.weight", {32, 64});
      b.AddTensor(p + "ffn_up.weight", {32, 64});
      b.AddTensor(p + "ffn_down.weight", {64, 32});
    }
  }
  return b;
}

// Ways to break a model that leave the container well-formed.
inline void RemoveKey(GgufBuilder& b, const std::string& name) {
  std::erase_if(b.keys, [&](const GgufBuilder::Key& key) { return key.name == name; });
}
inline void RemoveTensor(GgufBuilder& b, const std::string& name) {
  std::erase_if(b.tensors, [&](const GgufBuilder::Tensor& tensor) { return tensor.name == name; });
}
inline void SetNumber(GgufBuilder& b, const std::string& name, uint32_t value) {
  RemoveKey(b, name);
  AddNumber(b, name, value);
}
inline void SetShape(GgufBuilder& b, const std::string& name, std::vector<uint64_t> ne) {
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (tensor.name == name) tensor.ne = ne;
  }
}

}  // namespace hearth::testing
