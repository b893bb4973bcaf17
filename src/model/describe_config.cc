// SPDX-License-Identifier: Apache-2.0
// config.json: Hugging Face's keys, and those of OpenAI's original gpt-oss release.
#include <string>

#include "model/describe.h"
#include "model/rope.h"

namespace hearth {
namespace {

Result<Family> FamilyOf(std::string_view type) {
  if (type == "gpt_oss") return Family::kGptOss;
  if (type == "llama") return Family::kLlama;
  if (type == "qwen2") return Family::kQwen2;
  if (type == "qwen3") return Family::kQwen3;
  if (type == "qwen3_moe") return Family::kQwen3Moe;
  return Error(Code::kUnsupported,
               "model_type %s; Hearth runs gpt_oss, llama, qwen2, qwen3 and qwen3_moe",
               Quoted(type).c_str());
}

Status ReadShape(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(const int layers, facts.Int("num_hidden_layers", 1, kMaxLayers));
  spec.layers.resize(static_cast<size_t>(layers));
  HEARTH_ASSIGN(spec.d_model, facts.Int("hidden_size", 1, kMaxWidth));
  HEARTH_ASSIGN(spec.n_heads, facts.Int("num_attention_heads", 1, kMaxHeads));
  HEARTH_ASSIGN(spec.n_kv_heads, facts.IntOr("num_key_value_heads", 1, kMaxHeads, spec.n_heads));
  HEARTH_ASSIGN(spec.d_head, facts.IntOr("head_dim", 1, kMaxHead, spec.d_model / spec.n_heads));
  HEARTH_ASSIGN(spec.vocab_size, facts.Int("vocab_size", 1, kMaxVocab));
  return Status();
}

// Newer files nest everything about rope in `rope_parameters`; older ones state rope_theta at the
// top and the scaling in `rope_scaling`, whose kind may be called `type` or `rope_type`.
Status ReadRope(const Json& config, const Facts& facts, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  rope.pairing = RopePairing::kHalves;
  rope.n_dims = spec.d_head;
  HEARTH_ASSIGN(const double share, facts.RealOr("partial_rotary_factor", 0, 1, 1));
  if (share != 1) return Error(Code::kUnsupported, "partial_rotary_factor %g", share);
  const Json nothing;
  const Json* nested = config.Find("rope_parameters");
  if (nested == nullptr || nested->is_null()) nested = config.Find("rope_scaling");
  if (nested == nullptr) nested = &nothing;
  const JsonFacts scaling(*nested);
  HEARTH_ASSIGN(const double theta, facts.RealOr("rope_theta", 1.001, 1e12, 10000));
  HEARTH_ASSIGN(rope.theta, scaling.RealOr("rope_theta", 1.001, 1e12, theta));
  HEARTH_ASSIGN(const std::string old_kind, scaling.TextOr("type", "default"));
  HEARTH_ASSIGN(const std::string kind, scaling.TextOr("rope_type", old_kind));
  if (kind == "default") return Status();
  HEARTH_ASSIGN(rope.original_context, scaling.IntOr("original_max_position_embeddings", 1,
                                                     kMaxContext, spec.max_context));
  const double grown = static_cast<double>(spec.max_context) / rope.original_context;
  HEARTH_ASSIGN(rope.factor, scaling.RealOr("factor", 1, 1e6, grown));
  if (kind == "linear") {
    rope.scaling = RopeScaling::kLinear;
  } else if (kind == "llama3") {
    rope.scaling = RopeScaling::kLlama3;
    HEARTH_ASSIGN(rope.low_freq_factor, scaling.Real("low_freq_factor", 1e-3, 1e6));
    HEARTH_ASSIGN(rope.high_freq_factor, scaling.Real("high_freq_factor", 1e-3, 1e6));
  } else if (kind == "yarn") {
    rope.scaling = RopeScaling::kYarn;
    HEARTH_ASSIGN(rope.beta_fast, scaling.RealOr("beta_fast", 1e-3, 1e6, 32));
    HEARTH_ASSIGN(rope.beta_slow, scaling.RealOr("beta_slow", 1e-3, 1e6, 1));
    HEARTH_ASSIGN(rope.yarn_truncate, scaling.FlagOr("truncate", spec.family != Family::kGptOss));
    HEARTH_ASSIGN(rope.concentration,
                  scaling.RealOr("attention_factor", 1e-3, 1e3, YarnConcentration(rope.factor)));
    if (scaling.Has("mscale") || scaling.Has("mscale_all_dim")) {
      return Error(Code::kUnsupported, "rope scaling with mscale");
    }
  } else {
    return Error(Code::kUnsupported, "rope type %s", Quoted(kind).c_str());
  }
  return Status();
}

// `layer_types` says it layer by layer; older qwen2 files give the first layer that slides.
Status ReadWindows(const Facts& facts, ModelSpec& spec) {
  const bool gpt_oss = spec.family == Family::kGptOss;
  HEARTH_ASSIGN(const bool slides, facts.FlagOr("use_sliding_window", gpt_oss));
  HEARTH_ASSIGN(const int window, facts.IntOr("sliding_window", 1, kMaxContext, 0));
  if (const auto types = facts.AsTexts("layer_types")) {
    if (types->size() != spec.layers.size()) {
      return Error(Code::kCorrupt, "layer_types: %zu entries for %zu layers", types->size(),
                   spec.layers.size());
    }
    for (size_t i = 0; i < types->size(); ++i) {
      const std::string& type = (*types)[i];
      if (type == "full_attention") continue;
      if (type != "sliding_attention" || window == 0) {
        return Error(Code::kUnsupported, "layer_types[%zu] %s with sliding_window %d", i,
                     Quoted(type).c_str(), window);
      }
      spec.layers[i].window = window;
    }
    return Status();
  }
  if (facts.Has("layer_types")) {
    return Error(Code::kCorrupt, "layer_types: expected a list of texts");
  }
  if (!slides) return Status();
  if (gpt_oss) {
    if (window == 0) return Error(Code::kCorrupt, "sliding_window: missing");
    AlternateWindows(spec, window);
    return Status();
  }
  HEARTH_ASSIGN(const int first, facts.IntOr("max_window_layers", 0, kMaxLayers, 0));
  for (size_t i = static_cast<size_t>(first); i < spec.layers.size(); ++i) {
    spec.layers[i].window = window;
  }
  return Status();
}

Status ReadFfn(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(spec.d_ff, facts.Int("intermediate_size", 1, kMaxWidth));
  HEARTH_ASSIGN(const std::string act, facts.TextOr("hidden_act", "silu"));
  if (act != "silu") return Error(Code::kUnsupported, "hidden_act %s", Quoted(act).c_str());
  if (spec.family == Family::kGptOss) {
    spec.d_ff_expert = spec.d_ff;
    HEARTH_ASSIGN(spec.n_experts, facts.Int("num_local_experts", 1, kMaxExperts));
    HEARTH_ASSIGN(spec.n_active_experts, facts.Int("num_experts_per_tok", 1, kMaxExperts));
    HEARTH_ASSIGN(spec.swiglu_limit, facts.RealOr("swiglu_limit", 0, 1e6, 7));
  } else if (spec.family == Family::kQwen3Moe) {
    // transformers 5 saves the published `num_experts` under gpt-oss's name.
    const char* count = facts.Has("num_local_experts") ? "num_local_experts" : "num_experts";
    HEARTH_ASSIGN(spec.n_experts, facts.Int(count, 1, kMaxExperts));
    HEARTH_ASSIGN(spec.n_active_experts, facts.Int("num_experts_per_tok", 1, kMaxExperts));
    HEARTH_ASSIGN(spec.d_ff_expert, facts.Int("moe_intermediate_size", 1, kMaxWidth));
    HEARTH_ASSIGN(spec.renormalise_experts, facts.FlagOr("norm_topk_prob", false));
    HEARTH_ASSIGN(const int every, facts.IntOr("decoder_sparse_step", 1, kMaxLayers, 1));
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      if ((static_cast<int>(i) + 1) % every != 0) spec.layers[i].router = RouterKind::kNone;
    }
    for (const double layer : facts.AsNumbers("mlp_only_layers").value_or(std::vector<double>())) {
      if (layer >= 0 && layer < static_cast<double>(spec.layers.size())) {
        spec.layers[static_cast<size_t>(layer)].router = RouterKind::kNone;
      }
    }
  }
  return Status();
}

}  // namespace

Result<ModelSpec> DescribeHuggingFace(const Json& config) {
  const JsonFacts facts(config);
  ModelSpec spec;
  HEARTH_ASSIGN(const std::string type, facts.TextOr("model_type", ""));
  HEARTH_ASSIGN(spec.family, FamilyOf(type));
  HEARTH_ASSIGN(spec.name, facts.TextOr("_name_or_path", ""));
  HEARTH_TRY(ReadShape(facts, spec));
  HEARTH_ASSIGN(spec.max_context, facts.Int("max_position_embeddings", 1, kMaxContext));
  HEARTH_ASSIGN(spec.norm_eps, facts.Real("rms_norm_eps", 0, 1));
  HEARTH_ASSIGN(spec.tied_head, facts.FlagOr("tie_word_embeddings", false));
  ApplyFamily(spec);
  HEARTH_TRY(ReadRope(config, facts, spec));
  HEARTH_TRY(ReadWindows(facts, spec));
  HEARTH_TRY(ReadFfn(facts, spec));
  return spec;
}

Result<ModelSpec> DescribeOpenAi(const Json& config) {
  const JsonFacts facts(config);
  ModelSpec spec;
  spec.family = Family::kGptOss;
  HEARTH_TRY(ReadShape(facts, spec));
  ApplyFamily(spec);
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
  if (context > kMaxContext) return Error(Code::kCorrupt, "a context of %g tokens", context);
  spec.max_context = static_cast<int>(context);
  return spec;
}

}  // namespace hearth
