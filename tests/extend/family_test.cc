// SPDX-License-Identifier: Apache-2.0
// A model family that src/ has never heard of: keys and tensor names of its own, attention that the
// built-in families do not have. Loaded from a file and run by the real engine on the CPU backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bits_rig.h"
#include "model/describe.h"
#include "model/family.h"
#include "model/reference.h"
#include "testing/random_weights.h"
#include "testing/temp_dir.h"
#include "testing/tiny_models.h"

namespace hearth {
namespace {

using testing::GgufBuilder;
using ::testing::HasSubstr;

constexpr std::string_view kNames[] = {"wren"};

// Every second layer sees the last `reach` positions, and scores are divided by the head's width
// rather than its root.
Status DescribeWren(const GgufSource& source, ModelSpec& spec) {
  const Facts& facts = source.facts;
  HEARTH_ASSIGN(const int layers, facts.Int("depth", 1, kMaxLayers));
  spec.layers.resize(static_cast<size_t>(layers));
  HEARTH_ASSIGN(spec.d_model, facts.Int("width", 1, kMaxWidth));
  HEARTH_ASSIGN(spec.n_heads, facts.Int("heads", 1, kMaxHeads));
  HEARTH_ASSIGN(const int reach, facts.Int("reach", 1, kMaxContext));
  HEARTH_ASSIGN(spec.vocab_size, facts.Int("tokens", 1, kMaxVocab));
  spec.n_kv_heads = spec.n_heads;
  spec.d_head = spec.d_model / spec.n_heads;
  spec.d_ff = 2 * spec.d_model;
  spec.max_context = 256;
  spec.attention_scale = 1.0 / spec.d_head;
  spec.rope.n_dims = spec.d_head / 2;
  spec.rope.pairing = RopePairing::kNeighbours;
  spec.tied_head = true;
  AlternateWindows(spec, reach);
  return Status();
}

Status BindWren(const Binder& binder, Model& model) {
  const ModelSpec& spec = model.spec;
  const int d = spec.d_model;
  HEARTH_ASSIGN(model.embedding, binder.Matrix("words", spec.vocab_size, d));
  HEARTH_ASSIGN(model.final_norm, binder.Vector("last.norm", d));
  model.head = model.embedding;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string p = "wing." + std::to_string(i) + ".";
    LayerWeights& w = model.layers[i];
    HEARTH_ASSIGN(w.attn_norm, binder.Vector(p + "look.norm", d));
    HEARTH_ASSIGN(const MatView qkv, binder.Matrix(p + "look", 3 * d, d));
    w.q = qkv.Rows(0, d);
    w.k = qkv.Rows(d, d);
    w.v = qkv.Rows(2 * d, d);
    HEARTH_ASSIGN(w.sinks, binder.VectorIfAny(p + "look.sink", spec.n_heads));
    HEARTH_ASSIGN(w.attn_out, binder.Matrix(p + "look.out", d, d));
    HEARTH_ASSIGN(w.ffn_norm, binder.Vector(p + "think.norm", d));
    FfnWeights ffn;
    HEARTH_ASSIGN(ffn.gate, binder.Matrix(p + "think.gate", spec.d_ff, d));
    HEARTH_ASSIGN(ffn.up, binder.Matrix(p + "think.up", spec.d_ff, d));
    HEARTH_ASSIGN(ffn.down, binder.Matrix(p + "think.down", d, spec.d_ff));
    w.ffn.push_back(ffn);
  }
  return Status();
}

const ModelFamily kWren = {
    .name = "wren",
    .gguf_names = kNames,
    .config_name = "",
    .required = {.sinks = true},
    .describe_gguf = DescribeWren,
    .bind_gguf = BindWren,
};

GgufBuilder WrenFile() {
  GgufBuilder b;
  b.AddString("general.architecture", "wren");
  testing::AddNumber(b, "wren.depth", 3);
  testing::AddNumber(b, "wren.width", 64);
  testing::AddNumber(b, "wren.heads", 4);
  testing::AddNumber(b, "wren.reach", 5);
  testing::AddNumber(b, "wren.tokens", 96);
  b.AddTensor("words", {64, 96}).AddTensor("last.norm", {64});
  for (int i = 0; i < 3; ++i) {
    const std::string p = "wing." + std::to_string(i) + ".";
    b.AddTensor(p + "look.norm", {64}).AddTensor(p + "look", {64, 192});
    b.AddTensor(p + "look.sink", {4}).AddTensor(p + "look.out", {64, 64});
    b.AddTensor(p + "think.norm", {64}).AddTensor(p + "think.gate", {64, 128});
    b.AddTensor(p + "think.up", {64, 128}).AddTensor(p + "think.down", {128, 64});
  }
  return b;
}

Result<Model> Load(const GgufBuilder& b, FamilyList families) {
  const testing::TempDir folder;
  folder.Write("model.gguf", testing::RandomWeights(b, 11));
  HEARTH_ASSIGN(std::unique_ptr<WeightFile> file, WeightFile::Open(folder.Path("model.gguf")));
  return LoadModel(std::move(file), families);
}

std::vector<const ModelFamily*> WithWren() {
  std::vector<const ModelFamily*> all(BuiltInFamilies().begin(), BuiltInFamilies().end());
  all.push_back(&kWren);
  return all;
}

TEST(FamilyFromOutside, IsUnknownUntilItIsHandedOver) {
  Result<Model> model = Load(WrenFile(), BuiltInFamilies());
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(
      model.status().message(),
      HasSubstr(
          "architecture \"wren\" is not supported; supported: gpt-oss, llama, qwen2, qwen3 and "
          "qwen3moe"));
}

TEST(FamilyFromOutside, FillsTheSpec) {
  Result<Model> model = Load(WrenFile(), WithWren());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->spec.family, "wren");
  EXPECT_EQ(model->spec.max_context, 256);
  EXPECT_EQ(model->spec.attention_scale, 1.0 / 16) << "a family's own scale was overwritten";
  EXPECT_EQ(model->spec.layers[2].window, 5);
}

TEST(FamilyFromOutside, WeightsItRequiresAreAskedFor) {
  GgufBuilder b = WrenFile();
  testing::RemoveTensor(b, "wing.1.look.sink");
  Result<Model> model = Load(b, WithWren());
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(), HasSubstr("layer 1: a wren model needs attention sinks"));
}

TEST(FamilyFromOutside, BuiltInFamiliesStillLoadBesideIt) {
  Result<Model> model = Load(testing::TinyModel("qwen3"), WithWren());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->spec.family, "qwen3");
}

// Log-probabilities of the prompt, and greedy tokens, by the engine and by the definition.
TEST(FamilyFromOutside, RunsLikeTheReference) {
  Result<Model> model = Load(WrenFile(), WithWren());
  ASSERT_TRUE(model.ok()) << model.status().message();
  testing::Case c;
  for (int i = 0; i < 40; ++i) c.request.prompt.push_back(i * 37 % 96);
  c.request.max_tokens = 8;
  c.request.sampling.temperature = 0;
  c.request.sampling.num_prompt_logprobs = 1;
  testing::Machine machine(*model, {64, 64});
  machine.Submit(c);
  machine.Finish();
  ASSERT_EQ(c.heard->tokens.size(), 8u) << c.heard->record.detail;
  ASSERT_EQ(c.heard->prompt.size(), 39u);

  Reference reference(*model);
  std::vector<Token> all = c.request.prompt;
  all.insert(all.end(), c.heard->tokens.begin(), c.heard->tokens.end());
  const auto compare = [&](int position, std::span<const double> logits) {
    const auto next = static_cast<size_t>(position) + 1;
    if (next >= all.size()) return;
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    const auto chosen = static_cast<size_t>(all[next]);
    if (next < c.request.prompt.size()) {
      const double expected = logits[chosen] - std::log(total);
      const double told = static_cast<double>(c.heard->prompt[next - 1].chosen.logprob);
      EXPECT_NEAR(told, expected, 2e-3) << "position " << position;
    } else {
      const double best = *std::max_element(logits.begin(), logits.end());
      EXPECT_NEAR(logits[chosen], best, 2e-3) << "token " << next - c.request.prompt.size();
    }
  };
  EXPECT_TRUE(reference.Append(all, Reference::Wanted::kEveryRow, compare).ok());
}

}  // namespace
}  // namespace hearth
