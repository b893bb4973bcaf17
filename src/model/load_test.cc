// SPDX-License-Identifier: Apache-2.0
// Loading: what every family's file must hold, and how each missing or misshapen part is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/costs.h"
#include "model/model.h"
#include "testing/data.h"
#include "testing/tiny_models.h"
#include "weights/gguf_file.h"

namespace hearth {
namespace {

using ::hearth::testing::AddNumber;
using ::hearth::testing::AsBytes;
using ::hearth::testing::GgufBuilder;
using ::hearth::testing::RemoveKey;
using ::hearth::testing::RemoveTensor;
using ::hearth::testing::SetNumber;
using ::hearth::testing::SetShape;
using ::hearth::testing::TinyModel;
using ::testing::HasSubstr;

// `bytes` must outlive the model: its weights are views into them.
Result<Model> LoadFrom(const std::string& bytes) {
  HEARTH_ASSIGN(std::unique_ptr<WeightFile> file, OpenGgufBytes(AsBytes(bytes)));
  return LoadModel(std::move(file));
}

TEST(LoadModel, EveryFamilyLoads) {
  for (const char* arch : {"llama", "qwen2", "qwen3", "qwen3moe", "gpt-oss", "gptoss"}) {
    const std::string bytes = TinyModel(arch).Build();
    Result<Model> model = LoadFrom(bytes);
    ASSERT_TRUE(model.ok()) << arch << ": " << model.status().message();
    EXPECT_EQ(model->spec.vocab_size, 48) << arch;
    EXPECT_EQ(model->layers.size(), 2u) << arch;
    EXPECT_EQ(model->spec.d_head, 8) << arch;
  }
}

TEST(LoadModel, GptOssKinds) {
  const std::string bytes = TinyModel("gpt-oss").Build();
  Result<Model> model = LoadFrom(bytes);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ModelSpec& spec = model->spec;
  EXPECT_EQ(spec.layers[0].window, 8);
  EXPECT_EQ(spec.layers[1].window, 0);
  EXPECT_EQ(spec.layers[0].router, RouterKind::kTopKThenSoftmax);
  EXPECT_EQ(spec.ffn, FfnKind::kClampedSwiglu);
  EXPECT_FALSE(spec.rope.yarn_truncate);
  EXPECT_EQ(spec.rope.pairing, RopePairing::kHalves);
  EXPECT_EQ(model->layers[0].ffn.size(), 4u);
  EXPECT_EQ(model->layers[0].ffn[3].down.dtype, DType::kMxfp4);
  EXPECT_EQ(spec.norm_eps, 1e-6);  // the decimal that was meant, not the float's neighbour
}

TEST(LoadModel, OllamaFusedTensorsAreTakenApart) {
  GgufBuilder b = TinyModel("gptoss");
  for (int layer = 0; layer < 2; ++layer) {
    const std::string p = "blk." + std::to_string(layer) + ".";
    for (const char* name : {"attn_q", "attn_k", "attn_v", "ffn_gate_exps", "ffn_up_exps"}) {
      RemoveTensor(b, p + name + ".weight");
      RemoveTensor(b, p + name + ".bias");
    }
    b.AddTensor(p + "attn_qkv.weight", {32, 64}).AddTensor(p + "attn_qkv.bias", {64});
    b.AddTensor(p + "ffn_gate_up_exps.weight", {32, 128, 4}, 39);
    b.AddTensor(p + "ffn_gate_up_exps.bias", {128, 4});
  }
  const std::string bytes = b.Build();
  Result<Model> model = LoadFrom(bytes);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const LayerWeights& w = model->layers[1];
  EXPECT_EQ(w.k.data - w.q.data, 32 * 32 * 4);
  EXPECT_EQ(w.v_bias.data - w.q_bias.data, 48 * 4);
  EXPECT_EQ(w.ffn[0].up.data - w.ffn[0].gate.data, 17);
  EXPECT_EQ(w.ffn[0].gate.row_bytes, 34);
  EXPECT_EQ(w.ffn[0].up_bias.data - w.ffn[0].gate_bias.data, 4);
  EXPECT_EQ(w.ffn[0].up_bias.col_bytes, 8);
  EXPECT_EQ(w.ffn[0].up_bias.cols, 64);
}

TEST(LoadModel, HeadIsTiedWhenThereIsNoOutput) {
  GgufBuilder b = TinyModel("llama");
  RemoveTensor(b, "output.weight");
  const std::string bytes = b.Build();
  Result<Model> model = LoadFrom(bytes);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->spec.tied_head);
  EXPECT_EQ(model->head.data, model->embedding.data);
}

TEST(LoadModel, QwenMoeLayerWithoutRouterIsDense) {
  GgufBuilder b = TinyModel("qwen3moe");
  for (const char* name : {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    RemoveTensor(b, std::string("blk.1.") + name + ".weight");
  }
  b.AddTensor("blk.1.ffn_gate.weight", {32, 64}).AddTensor("blk.1.ffn_up.weight", {32, 64});
  b.AddTensor("blk.1.ffn_down.weight", {64, 32});
  const std::string bytes = b.Build();
  Result<Model> model = LoadFrom(bytes);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->spec.layers[0].router, RouterKind::kSoftmaxThenTopK);
  EXPECT_EQ(model->spec.layers[1].router, RouterKind::kNone);
  EXPECT_EQ(model->layers[1].ffn.size(), 1u);
}

struct BrokenModel {
  const char* name;
  const char* arch;
  std::function<void(GgufBuilder&)> Break;
  const char* message;
};

class LoadBroken : public ::testing::TestWithParam<BrokenModel> {};

TEST_P(LoadBroken, IsRefusedPrecisely) {
  GgufBuilder b = TinyModel(GetParam().arch);
  GetParam().Break(b);
  const std::string bytes = b.Build();
  const Result<Model> model = LoadFrom(bytes);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(), HasSubstr(GetParam().message));
}

const BrokenModel kBroken[] = {
    {"ArchitectureUnknown", "llama",
     [](GgufBuilder& b) { b.keys[0].value = testing::RawString("mamba"); },
     "architecture \"mamba\""},
    {"ArchitectureMissing", "llama", [](GgufBuilder& b) { RemoveKey(b, "general.architecture"); },
     "architecture \"\""},
    {"ArchitectureNoText", "llama",
     [](GgufBuilder& b) {
       RemoveKey(b, "general.architecture");
       AddNumber(b, "general.architecture", 3);
     },
     "architecture: expected a string"},
    {"LayersMissing", "llama", [](GgufBuilder& b) { RemoveKey(b, "llama.block_count"); },
     "metadata of llama: block_count: missing"},
    {"LayersZero", "llama", [](GgufBuilder& b) { SetNumber(b, "llama.block_count", 0); },
     "block_count: expected a number from 1 to 1024, found 0"},
    {"LayersTooMany", "llama",
     [](GgufBuilder& b) { SetNumber(b, "llama.block_count", 4000000000u); },
     "block_count: expected a number from 1 to 1024, found 4000000000"},
    {"LayersMoreThanAllTensors", "llama",
     [](GgufBuilder& b) { SetNumber(b, "llama.block_count", 1000); },
     "1000 layers, but only 21 tensors"},
    {"LayersMoreThanTensors", "llama", [](GgufBuilder& b) { SetNumber(b, "llama.block_count", 3); },
     "blk.2.attn_norm.weight"},
    {"LayersNoNumber", "llama",
     [](GgufBuilder& b) {
       RemoveKey(b, "llama.block_count");
       b.AddString("llama.block_count", "two");
     },
     "block_count: expected a number"},
    {"LayersFraction", "llama",
     [](GgufBuilder& b) {
       RemoveKey(b, "llama.block_count");
       b.Add("llama.block_count", GgufType::kF32, 1.5f);
     },
     "block_count: expected a whole number, found 1.5"},
    {"WidthWrong", "llama", [](GgufBuilder& b) { SetNumber(b, "llama.embedding_length", 64); },
     "token_embd.weight: expected shape [48, 64], found [48, 32]"},
    {"HeadsZero", "llama", [](GgufBuilder& b) { SetNumber(b, "llama.attention.head_count", 0); },
     "attention.head_count: expected a number from 1"},
    {"KvHeadsUneven", "llama",
     [](GgufBuilder& b) { SetNumber(b, "llama.attention.head_count_kv", 3); },
     "attention heads, 4, is not a multiple of the number of KV heads, 3"},
    {"KvHeadsWrong", "llama",
     [](GgufBuilder& b) { SetNumber(b, "llama.attention.head_count_kv", 1); },
     "blk.0.attn_k.weight: expected shape [8, 32], found [16, 32]"},
    {"HeadOdd", "llama",
     [](GgufBuilder& b) {
       SetNumber(b, "llama.attention.key_length", 7);
       SetNumber(b, "llama.attention.value_length", 7);
     },
     "rope rotates 7 values of a head of 7"},
    {"ValueHeadDiffers", "llama",
     [](GgufBuilder& b) { SetNumber(b, "llama.attention.value_length", 16); },
     "value heads of size 16 with key heads of size 8"},
    {"RopeWiderThanHead", "llama",
     [](GgufBuilder& b) { AddNumber(b, "llama.rope.dimension_count", 16); },
     "rope rotates 16 values of a head of 8"},
    {"EpsilonNan", "llama",
     [](GgufBuilder& b) {
       RemoveKey(b, "llama.attention.layer_norm_rms_epsilon");
       b.Add("llama.attention.layer_norm_rms_epsilon", GgufType::kF32,
             std::numeric_limits<float>::quiet_NaN());
     },
     "layer_norm_rms_epsilon: expected a number from 0 to 1, found nan"},
    {"ThetaZero", "llama",
     [](GgufBuilder& b) { b.Add("llama.rope.freq_base", GgufType::kF32, 0.0f); },
     "rope.freq_base: expected a number from 1.001"},
    {"ScalingUnknown", "qwen2",
     [](GgufBuilder& b) { b.AddString("qwen2.rope.scaling.type", "longrope"); },
     "rope.scaling.type \"longrope\""},
    {"YarnWithoutContext", "gpt-oss",
     [](GgufBuilder& b) { RemoveKey(b, "gpt-oss.rope.scaling.original_context_length"); },
     "rope.scaling.original_context_length: missing"},
    {"LlamaWithExperts", "llama", [](GgufBuilder& b) { AddNumber(b, "llama.expert_count", 8); },
     "llama models with 8 experts"},
    {"ExpertsMissing", "qwen3moe", [](GgufBuilder& b) { RemoveKey(b, "qwen3moe.expert_count"); },
     "expert_count: missing"},
    {"ExpertsWrong", "qwen3moe", [](GgufBuilder& b) { SetNumber(b, "qwen3moe.expert_count", 5); },
     "blk.0.ffn_gate_inp.weight: expected shape [5, 32], found [4, 32]"},
    {"MoreActiveThanExperts", "qwen3moe",
     [](GgufBuilder& b) { SetNumber(b, "qwen3moe.expert_used_count", 5); },
     "5 active experts, but only 4 experts"},
    {"WindowMissing", "gpt-oss",
     [](GgufBuilder& b) { RemoveKey(b, "gpt-oss.attention.sliding_window"); },
     "attention.sliding_window: missing"},
    {"WindowPatternUnknown", "gpt-oss",
     [](GgufBuilder& b) { AddNumber(b, "gpt-oss.attention.sliding_window_pattern", 6); },
     "attention.sliding_window_pattern 6"},
    {"SinksMissing", "gpt-oss", [](GgufBuilder& b) { RemoveTensor(b, "blk.1.attn_sinks.weight"); },
     "layer 1: a gpt-oss model needs attention sinks"},
    {"SinksWrong", "gpt-oss", [](GgufBuilder& b) { SetShape(b, "blk.1.attn_sinks.weight", {5}); },
     "blk.1.attn_sinks.weight: expected shape [4], found [5]"},
    {"BiasMissing", "qwen2", [](GgufBuilder& b) { RemoveTensor(b, "blk.0.attn_k.bias"); },
     "layer 0: a qwen2 model needs q, k, v bias"},
    {"OutputBiasMissing", "gpt-oss",
     [](GgufBuilder& b) { RemoveTensor(b, "blk.0.attn_output.bias"); },
     "layer 0: a gpt-oss model needs attention output bias"},
    {"RouterBiasMissing", "gpt-oss",
     [](GgufBuilder& b) { RemoveTensor(b, "blk.0.ffn_gate_inp.bias"); },
     "layer 0: a gpt-oss model needs router bias"},
    {"ExpertBiasMissing", "gpt-oss",
     [](GgufBuilder& b) { RemoveTensor(b, "blk.1.ffn_up_exps.bias"); },
     "layer 1: a gpt-oss model needs expert biases"},
    {"QNormMissing", "qwen3", [](GgufBuilder& b) { RemoveTensor(b, "blk.1.attn_q_norm.weight"); },
     "layer 1: a qwen3 model needs q and k norms"},
    {"EmbeddingMissing", "llama", [](GgufBuilder& b) { RemoveTensor(b, "token_embd.weight"); },
     "token_embd.weight"},
    {"EmbeddingRank", "llama", [](GgufBuilder& b) { SetShape(b, "token_embd.weight", {32}); },
     "token_embd.weight: expected shape [vocabulary, 32], found [32]"},
    {"VocabularyDiffers", "llama", [](GgufBuilder& b) { AddNumber(b, "llama.vocab_size", 49); },
     "token_embd.weight: expected shape [49, 32], found [48, 32]"},
    {"HeadWrong", "llama", [](GgufBuilder& b) { SetShape(b, "output.weight", {32, 47}); },
     "output.weight: expected shape [48, 32], found [47, 32]"},
    {"FfnWrong", "llama", [](GgufBuilder& b) { SetShape(b, "blk.0.ffn_down.weight", {32, 64}); },
     "blk.0.ffn_down.weight: expected shape [32, 64], found [64, 32]"},
    {"ExpertStackWrong", "gpt-oss",
     [](GgufBuilder& b) { SetShape(b, "blk.0.ffn_up_exps.weight", {32, 64, 3}); },
     "blk.0.ffn_up_exps.weight: expected shape [4, 64, 32], found [3, 64, 32]"},
    {"FusedGateUpIsNotGuessed", "gpt-oss",
     [](GgufBuilder& b) {
       RemoveTensor(b, "blk.0.ffn_gate_exps.weight");
       b.AddTensor("blk.0.ffn_gate_up_exps.weight", {32, 128, 4}, 39);
     },
     "blk.0.ffn_gate_exps.weight"},
    {"IntegersAreNoWeights", "llama",
     [](GgufBuilder& b) {
       for (auto& tensor : b.tensors) {
         if (tensor.name == "blk.0.attn_q.weight") tensor.type = 26;
       }
     },
     "blk.0.attn_q.weight: weight format I32 is not supported"},
    {"RopeFreqsWrongSize", "llama", [](GgufBuilder& b) { b.AddTensor("rope_freqs.weight", {5}); },
     "rope_freqs.weight: expected F32 [4], found F32 [5]"},
    {"RopeFreqsNotPositive", "llama", [](GgufBuilder& b) { b.AddTensor("rope_freqs.weight", {4}); },
     "is not a valid frequency divisor"},
};

INSTANTIATE_TEST_SUITE_P(Named, LoadBroken, ::testing::ValuesIn(kBroken),
                         [](const auto& broken) { return std::string(broken.param.name); });

TEST(CheckWeights, RefusesMxfp4Nan) {
  GgufBuilder b = TinyModel("gpt-oss");
  std::string bytes = b.Build();
  {
    Result<Model> model = LoadFrom(bytes);
    ASSERT_TRUE(model.ok());
    // The builder's fill bytes are ordinary numbers in every format used here.
    EXPECT_TRUE(CheckWeights(*model).ok()) << CheckWeights(*model).message();
    const std::byte* scale = model->layers[1].ffn[2].down.data + 17;
    bytes[static_cast<size_t>(reinterpret_cast<const char*>(scale) - bytes.data())] = '\xff';
  }
  Result<Model> model = LoadFrom(bytes);
  ASSERT_TRUE(model.ok());
  const Status status = CheckWeights(*model);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("blk.1.ffn_down_exps.weight"));
}

TEST(Costs, CountWhatATokenReads) {
  const std::string bytes = TinyModel("qwen3moe").Build();
  Result<Model> model = LoadFrom(bytes);
  ASSERT_TRUE(model.ok());
  const ModelCosts costs = CostsOf(*model);
  const int64_t attention = 32 + 32 * 32 + 2 * 16 * 32 + 32 * 32 + 2 * 8 + 32;
  const int64_t expert = 3 * 32 * 64;
  const int64_t shared = 2 * (attention + 4 * 32) + 32;
  EXPECT_EQ(costs.parameters, 2 * 48 * 32 + shared + 2 * 4 * expert);
  EXPECT_EQ(costs.active_parameters, 48 * 32 + 32 + shared + 2 * 2 * expert);
  EXPECT_EQ(costs.decode_bytes, 4 * costs.active_parameters);
  EXPECT_EQ(costs.kv_bytes_per_token, 2 * 2 * 2 * 2 * 8);
}

TEST(Costs, WindowLayersAreCapped) {
  const std::string bytes = TinyModel("gpt-oss").Build();
  Result<Model> model = LoadFrom(bytes);
  ASSERT_TRUE(model.ok());
  const ModelCosts costs = CostsOf(*model);
  EXPECT_EQ(costs.kv_bytes_per_token, 2 * 2 * 2 * 8);     // one layer sees everything
  EXPECT_EQ(costs.kv_window_bytes, 8 * (2 * 2 * 2 * 8));  // the other sees 8 positions
  EXPECT_EQ(KvBytes(costs, 100), 100 * 64 + 512);
}

}  // namespace
}  // namespace hearth
