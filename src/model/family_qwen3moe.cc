// SPDX-License-Identifier: Apache-2.0
// Qwen 3 with experts, of which some layers may have none.
#include <string>

#include "model/describe.h"
#include "model/family.h"
#include "model/read_config.h"
#include "model/read_gguf.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufNames[] = {"qwen3moe"};

Status DescribeGguf(const GgufSource& source, ModelSpec& spec) {
  HEARTH_TRY(ReadGgufShape(source, spec));
  HEARTH_TRY(ReadGgufExperts(source, {.router = RouterKind::kSoftmaxThenTopK}, spec));
  HEARTH_TRY(ReadGgufRope(source, RopePairing::kHalves, spec));
  spec.renormalise_experts = true;  // GGUF cannot say it
  // A layer without a router is a dense one.
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (!source.file.Has("blk." + std::to_string(i) + ".ffn_gate_inp.weight")) {
      spec.layers[i].router = RouterKind::kNone;
    }
  }
  return Status();
}

Status ReadExperts(const Facts& facts, ModelSpec& spec) {
  // transformers 5 saves the published `num_experts` under gpt-oss's name.
  const char* count = facts.Has("num_local_experts") ? "num_local_experts" : "num_experts";
  HEARTH_ASSIGN(spec.n_experts, facts.Int(count, 1, kMaxExperts));
  HEARTH_ASSIGN(spec.n_active_experts, facts.Int("num_experts_per_tok", 1, kMaxExperts));
  HEARTH_ASSIGN(spec.d_ff_expert, facts.Int("moe_intermediate_size", 1, kMaxWidth));
  HEARTH_ASSIGN(spec.renormalise_experts, facts.FlagOr("norm_topk_prob", false));
  HEARTH_ASSIGN(const int every, facts.IntOr("decoder_sparse_step", 1, kMaxLayers, 1));
  SetRouter(spec, RouterKind::kSoftmaxThenTopK);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if ((static_cast<int>(i) + 1) % every != 0) spec.layers[i].router = RouterKind::kNone;
  }
  for (const double layer : facts.AsNumbers("mlp_only_layers").value_or(std::vector<double>())) {
    if (layer >= 0 && layer < static_cast<double>(spec.layers.size())) {
      spec.layers[static_cast<size_t>(layer)].router = RouterKind::kNone;
    }
  }
  return Status();
}

Status DescribeHuggingFace(const Json& config, ModelSpec& spec) {
  HEARTH_TRY(ReadConfigPlain(config, spec));
  return ReadExperts(JsonFacts(config), spec);
}

Status BindExperts(const Binder& binder, const ModelSpec& spec, const std::string& p,
                   LayerWeights& w) {
  HEARTH_ASSIGN(w.router, binder.Matrix(p + "gate.weight", spec.n_experts, spec.d_model));
  for (int i = 0; i < spec.n_experts; ++i) {
    HEARTH_ASSIGN(const FfnWeights ffn, BindGlu(binder, p + "experts." + std::to_string(i) + ".",
                                                spec.d_model, spec.d_ff_expert));
    w.ffn.push_back(ffn);
  }
  return Status();
}

Status BindMoeHuggingFace(const Binder& binder, Model& model) {
  return BindHuggingFace(binder, BindExperts, model);
}

}  // namespace

const ModelFamily kQwen3MoeFamily = {
    .name = "qwen3moe",
    .gguf_names = kGgufNames,
    .config_name = "qwen3_moe",
    .required = {.qk_norm = true},
    .describe_gguf = DescribeGguf,
    .bind_gguf = BindGgufUsual,
    .describe_hugging_face = DescribeHuggingFace,
    .bind_hugging_face = BindMoeHuggingFace,
};

}  // namespace hearth
