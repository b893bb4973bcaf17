// SPDX-License-Identifier: Apache-2.0
#include "model/read_config.h"

#include <string>

#include "model/describe.h"
#include "model/rope.h"

namespace hearth {

Status ReadConfigShape(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(const int layers, facts.Int("num_hidden_layers", 1, kMaxLayers));
  spec.layers.resize(static_cast<size_t>(layers));
  HEARTH_ASSIGN(spec.d_model, facts.Int("hidden_size", 1, kMaxWidth));
  HEARTH_ASSIGN(spec.n_heads, facts.Int("num_attention_heads", 1, kMaxHeads));
  HEARTH_ASSIGN(spec.n_kv_heads, facts.IntOr("num_key_value_heads", 1, kMaxHeads, spec.n_heads));
  HEARTH_ASSIGN(spec.d_head, facts.IntOr("head_dim", 1, kMaxHead, spec.d_model / spec.n_heads));
  HEARTH_ASSIGN(spec.vocab_size, facts.Int("vocab_size", 1, kMaxVocab));
  return Status();
}

Status ReadHuggingFaceShape(const Facts& facts, ModelSpec& spec) {
  HEARTH_TRY(ReadConfigShape(facts, spec));
  HEARTH_ASSIGN(spec.max_context, facts.Int("max_position_embeddings", 1, kMaxContext));
  HEARTH_ASSIGN(spec.norm_eps, facts.Real("rms_norm_eps", 0, 1));
  HEARTH_ASSIGN(spec.tied_head, facts.FlagOr("tie_word_embeddings", false));
  return Status();
}

// Newer files nest everything about rope in `rope_parameters`; older ones state rope_theta at the
// top and the scaling in `rope_scaling`, whose kind may be called `type` or `rope_type`.
Status ReadConfigRope(const Json& config, bool truncate, ModelSpec& spec) {
  const JsonFacts facts(config);
  RopeSpec& rope = spec.rope;
  rope.pairing = RopePairing::kHalves;
  rope.n_dims = spec.d_head;
  HEARTH_ASSIGN(const double share, facts.RealOr("partial_rotary_factor", 0, 1, 1));
  if (share != 1)
    return Error(Code::kUnsupported, "partial_rotary_factor %g is not supported; expected 1",
                 share);
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
    HEARTH_ASSIGN(rope.yarn_truncate, scaling.FlagOr("truncate", truncate));
    HEARTH_ASSIGN(rope.concentration,
                  scaling.RealOr("attention_factor", 1e-3, 1e3, YarnConcentration(rope.factor)));
    if (scaling.Has("mscale") || scaling.Has("mscale_all_dim")) {
      return Error(Code::kUnsupported, "rope scaling with mscale is not supported");
    }
  } else {
    return Error(Code::kUnsupported, "rope type %s is not supported", Quoted(kind).c_str());
  }
  return Status();
}

Result<bool> ReadLayerTypes(const Facts& facts, ModelSpec& spec) {
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
        return Error(Code::kUnsupported,
                     "layer_types[%zu] %s with sliding_window %d is not supported", i,
                     Quoted(type).c_str(), window);
      }
      spec.layers[i].window = window;
    }
    return true;
  }
  if (facts.Has("layer_types")) {
    return Error(Code::kCorrupt, "layer_types: expected an array of strings");
  }
  return false;
}

Status ReadConfigWindows(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(const bool slides, facts.FlagOr("use_sliding_window", false));
  HEARTH_ASSIGN(const bool told, ReadLayerTypes(facts, spec));
  if (told || !slides) return Status();
  HEARTH_ASSIGN(const int window, facts.IntOr("sliding_window", 1, kMaxContext, 0));
  HEARTH_ASSIGN(const int first, facts.IntOr("max_window_layers", 0, kMaxLayers, 0));
  for (size_t i = static_cast<size_t>(first); i < spec.layers.size(); ++i) {
    spec.layers[i].window = window;
  }
  return Status();
}

Status ReadConfigDense(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(spec.d_ff, facts.Int("intermediate_size", 1, kMaxWidth));
  HEARTH_ASSIGN(const std::string act, facts.TextOr("hidden_act", "silu"));
  if (act != "silu")
    return Error(Code::kUnsupported, "hidden_act %s is not supported", Quoted(act).c_str());
  return Status();
}

Status ReadConfigPlain(const Json& config, ModelSpec& spec) {
  const JsonFacts facts(config);
  HEARTH_TRY(ReadHuggingFaceShape(facts, spec));
  HEARTH_TRY(ReadConfigRope(config, true, spec));
  HEARTH_TRY(ReadConfigWindows(facts, spec));
  return ReadConfigDense(facts, spec);
}

}  // namespace hearth
