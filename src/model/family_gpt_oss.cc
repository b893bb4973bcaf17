// SPDX-License-Identifier: Apache-2.0
// gpt-oss: windows in every second layer, attention sinks, biases everywhere, clamped experts. It
// is published in three layouts: GGUF (Ollama's differs), Hugging Face's, and OpenAI's original one
// with q, k and v fused and MXFP4 in two planes.
#include "model/describe.h"
#include "model/family.h"
#include "model/read_config.h"
#include "model/read_gguf.h"
#include "model/rope.h"

namespace hearth {
namespace {

constexpr std::string_view kOllamaName = "gptoss";
constexpr std::string_view kGgufNames[] = {"gpt-oss", kOllamaName};

// What no file states.
void SetKinds(ModelSpec& spec) {
  SetRouter(spec, RouterKind::kTopKThenSoftmax);
  spec.ffn = FfnKind::kClampedSwiglu;
  spec.swiglu_alpha = 1.702;
  spec.swiglu_limit = 7.0;
}

Status DescribeGguf(const GgufSource& source, ModelSpec& spec) {
  HEARTH_TRY(ReadGgufShape(source, spec));
  // Older files state the experts' width only as the feed-forward length.
  const GgufExperts experts{.router = RouterKind::kTopKThenSoftmax, .width_may_be_missing = true};
  HEARTH_TRY(ReadGgufExperts(source, experts, spec));
  HEARTH_TRY(ReadGgufRope(source, RopePairing::kHalves, spec));
  SetKinds(spec);
  const Facts& facts = source.facts;
  HEARTH_ASSIGN(const int window, facts.Int("attention.sliding_window", 1, kMaxContext));
  HEARTH_ASSIGN(const int period,
                facts.IntOr("attention.sliding_window_pattern", 1, kMaxLayers, 2));
  if (period != 2) {
    return Error(Code::kUnsupported,
                 "attention.sliding_window_pattern %d is not supported; expected 2 for gpt-oss",
                 period);
  }
  AlternateWindows(spec, window);
  // GGUF cannot say it, but gpt-oss was trained with unrounded bounds; rounding them turns some
  // pairs by up to 76 % too much.
  spec.rope.yarn_truncate = false;
  return Status();
}

Status BindGgufLayout(const Binder& binder, Model& model) {
  const GgufValue* architecture = model.file->metadata()->Find("general.architecture");
  const GgufNaming naming{.ffn_norm = "post_attention_norm.weight",
                          .interleaves_gate_up = architecture->String() == kOllamaName};
  return BindGguf(binder, naming, model);
}

Status ReadWindows(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(const bool slides, facts.FlagOr("use_sliding_window", true));
  HEARTH_ASSIGN(const bool told, ReadLayerTypes(facts, spec));
  if (told || !slides) return Status();
  HEARTH_ASSIGN(const int window, facts.Int("sliding_window", 1, kMaxContext));
  AlternateWindows(spec, window);
  return Status();
}

Status DescribeHuggingFace(const Json& config, ModelSpec& spec) {
  const JsonFacts facts(config);
  HEARTH_TRY(ReadHuggingFaceShape(facts, spec));
  SetKinds(spec);
  HEARTH_TRY(ReadConfigRope(config, /*truncate=*/false, spec));
  HEARTH_TRY(ReadWindows(facts, spec));
  HEARTH_TRY(ReadConfigDense(facts, spec));
  spec.d_ff_expert = spec.d_ff;
  HEARTH_ASSIGN(spec.n_experts, facts.Int("num_local_experts", 1, kMaxExperts));
  HEARTH_ASSIGN(spec.n_active_experts, facts.Int("num_experts_per_tok", 1, kMaxExperts));
  HEARTH_ASSIGN(spec.swiglu_limit, facts.RealOr("swiglu_limit", 0, 1e6, 7));
  return Status();
}

// As MXFP4 planes or, dequantised, transposed.
Status BindExperts(const Binder& binder, const ModelSpec& spec, const std::string& p,
                   LayerWeights& w) {
  const int count = spec.n_experts, d = spec.d_model, d_ff = spec.d_ff_expert;
  HEARTH_ASSIGN(w.router, binder.Matrix(p + "router.weight", count, d));
  HEARTH_ASSIGN(w.router_bias, binder.Vector(p + "router.bias", count));
  const std::string e = p + "experts.";
  HEARTH_ASSIGN(const auto gate_up_bias,
                binder.VectorStack(e + "gate_up_proj_bias", count, 2 * d_ff));
  HEARTH_ASSIGN(const auto down_bias, binder.VectorStack(e + "down_proj_bias", count, d));
  std::vector<MatView> gate_up, down;
  if (binder.Has(e + "gate_up_proj")) {
    HEARTH_ASSIGN(gate_up, binder.TransposedStack(e + "gate_up_proj", count, 2 * d_ff, d));
    HEARTH_ASSIGN(down, binder.TransposedStack(e + "down_proj", count, d, d_ff));
  } else {
    HEARTH_ASSIGN(gate_up, binder.PlanesStack(e + "gate_up_proj_blocks", e + "gate_up_proj_scales",
                                              count, 2 * d_ff, d));
    HEARTH_ASSIGN(
        down, binder.PlanesStack(e + "down_proj_blocks", e + "down_proj_scales", count, d, d_ff));
  }
  SetExperts(gate_up, gate_up_bias, down, down_bias, w);
  return Status();
}

Status BindHuggingFaceLayout(const Binder& binder, Model& model) {
  return BindHuggingFace(binder, BindExperts, model);
}

Status DescribeOpenAi(const Json& config, ModelSpec& spec) {
  const JsonFacts facts(config);
  HEARTH_TRY(ReadConfigShape(facts, spec));
  SetKinds(spec);
  HEARTH_ASSIGN(spec.n_experts, facts.Int("num_experts", 1, kMaxExperts));
  HEARTH_ASSIGN(spec.n_active_experts, facts.Int("experts_per_token", 1, kMaxExperts));
  HEARTH_ASSIGN(spec.d_ff_expert, facts.Int("intermediate_size", 1, kMaxWidth));
  HEARTH_ASSIGN(spec.swiglu_limit, facts.RealOr("swiglu_limit", 0, 1e6, 7));
  HEARTH_ASSIGN(const int window, facts.Int("sliding_window", 1, kMaxContext));
  AlternateWindows(spec, window);
  spec.norm_eps = 1e-5;  // the release's code says it, its config does not
  RopeSpec& rope = spec.rope;
  rope.n_dims = spec.d_head;
  rope.scaling = RopeScaling::kYarn;
  rope.yarn_truncate = false;
  HEARTH_ASSIGN(rope.theta, facts.Real("rope_theta", 1.001, 1e12));
  HEARTH_ASSIGN(rope.factor, facts.Real("rope_scaling_factor", 1, 1e6));
  HEARTH_ASSIGN(rope.original_context, facts.Int("initial_context_length", 1, 1 << 20));
  HEARTH_ASSIGN(rope.beta_slow, facts.RealOr("rope_ntk_alpha", 1e-3, 1e6, 1));
  HEARTH_ASSIGN(rope.beta_fast, facts.RealOr("rope_ntk_beta", 1e-3, 1e6, 32));
  rope.concentration = YarnConcentration(rope.factor);
  const double context = rope.original_context * rope.factor;
  if (context > kMaxContext)
    return Error(Code::kCorrupt, "a context length of %.10g tokens is too large", context);
  spec.max_context = static_cast<int>(context);
  return Status();
}

Status BindOpenAiAttention(const Binder& binder, const ModelSpec& spec, const std::string& p,
                           LayerWeights& w) {
  const int q_rows = spec.n_heads * spec.d_head, kv_rows = spec.n_kv_heads * spec.d_head;
  const int rows = q_rows + 2 * kv_rows;
  HEARTH_ASSIGN(w.attn_norm, binder.Vector(p + "norm.scale", spec.d_model));
  HEARTH_ASSIGN(const MatView qkv, binder.Matrix(p + "qkv.weight", rows, spec.d_model));
  HEARTH_ASSIGN(const MatView bias, binder.Vector(p + "qkv.bias", rows));
  w.q = qkv.Rows(0, q_rows);
  w.k = qkv.Rows(q_rows, kv_rows);
  w.v = qkv.Rows(q_rows + kv_rows, kv_rows);
  SplitQkvBias(bias, q_rows, kv_rows, w);
  HEARTH_ASSIGN(w.sinks, binder.Vector(p + "sinks", spec.n_heads));
  HEARTH_ASSIGN(w.attn_out, binder.Matrix(p + "out.weight", spec.d_model, q_rows));
  HEARTH_ASSIGN(w.out_bias, binder.Vector(p + "out.bias", spec.d_model));
  return Status();
}

Status BindOpenAiMoe(const Binder& binder, const ModelSpec& spec, const std::string& p,
                     LayerWeights& w) {
  const int count = spec.n_experts, d = spec.d_model, d_ff = spec.d_ff_expert;
  HEARTH_ASSIGN(w.ffn_norm, binder.Vector(p + "norm.scale", d));
  HEARTH_ASSIGN(w.router, binder.Matrix(p + "gate.weight", count, d));
  HEARTH_ASSIGN(w.router_bias, binder.Vector(p + "gate.bias", count));
  HEARTH_ASSIGN(
      const auto gate_up,
      binder.PlanesStack(p + "mlp1_weight.blocks", p + "mlp1_weight.scales", count, 2 * d_ff, d));
  HEARTH_ASSIGN(const auto gate_up_bias, binder.VectorStack(p + "mlp1_bias", count, 2 * d_ff));
  HEARTH_ASSIGN(const auto down, binder.PlanesStack(p + "mlp2_weight.blocks",
                                                    p + "mlp2_weight.scales", count, d, d_ff));
  HEARTH_ASSIGN(const auto down_bias, binder.VectorStack(p + "mlp2_bias", count, d));
  SetExperts(gate_up, gate_up_bias, down, down_bias, w);
  return Status();
}

Status BindOpenAi(const Binder& binder, Model& model) {
  const ModelSpec& spec = model.spec;
  HEARTH_ASSIGN(model.embedding, binder.Matrix("embedding.weight", spec.vocab_size, spec.d_model));
  HEARTH_ASSIGN(model.final_norm, binder.Vector("norm.scale", spec.d_model));
  HEARTH_ASSIGN(model.head, binder.Matrix("unembedding.weight", spec.vocab_size, spec.d_model));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string p = "block." + std::to_string(i) + ".";
    HEARTH_TRY(BindOpenAiAttention(binder, spec, p + "attn.", model.layers[i]));
    HEARTH_TRY(BindOpenAiMoe(binder, spec, p + "mlp.", model.layers[i]));
  }
  return Status();
}

}  // namespace

const ModelFamily kGptOssFamily = {
    .name = "gpt-oss",
    .gguf_names = kGgufNames,
    .config_name = "gpt_oss",
    .required = {.qkv_bias = true,
                 .out_bias = true,
                 .sinks = true,
                 .router_bias = true,
                 .expert_bias = true},
    .describe_gguf = DescribeGguf,
    .bind_gguf = BindGgufLayout,
    .describe_hugging_face = DescribeHuggingFace,
    .bind_hugging_face = BindHuggingFaceLayout,
    .describe_openai = DescribeOpenAi,
    .bind_openai = BindOpenAi,
};

}  // namespace hearth
