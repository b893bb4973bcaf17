// SPDX-License-Identifier: Apache-2.0
// GGUF's metadata keys. Where a key is optional, the fallback is what the format's writers assume.
#include <string>

#include "model/describe.h"
#include "model/rope.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

Result<Family> FamilyOf(std::string_view architecture) {
  // "gptoss" is Ollama's spelling of the same model.
  if (architecture == "gpt-oss" || architecture == "gptoss") return Family::kGptOss;
  if (architecture == "llama") return Family::kLlama;
  if (architecture == "qwen2") return Family::kQwen2;
  if (architecture == "qwen3") return Family::kQwen3;
  if (architecture == "qwen3moe") return Family::kQwen3Moe;
  return Error(Code::kUnsupported,
               "architecture %s; Hearth runs gpt-oss, llama, qwen2, qwen3 and qwen3moe",
               Quoted(architecture).c_str());
}

Status ReadShape(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(const int layers, facts.Int("block_count", 1, kMaxLayers));
  spec.layers.resize(static_cast<size_t>(layers));
  HEARTH_ASSIGN(spec.max_context, facts.Int("context_length", 1, kMaxContext));
  HEARTH_ASSIGN(spec.d_model, facts.Int("embedding_length", 1, kMaxWidth));
  HEARTH_ASSIGN(spec.n_heads, facts.Int("attention.head_count", 1, kMaxHeads));
  HEARTH_ASSIGN(spec.n_kv_heads,
                facts.IntOr("attention.head_count_kv", 1, kMaxHeads, spec.n_heads));
  HEARTH_ASSIGN(spec.d_head,
                facts.IntOr("attention.key_length", 1, kMaxHead, spec.d_model / spec.n_heads));
  HEARTH_ASSIGN(const int d_value, facts.IntOr("attention.value_length", 1, kMaxHead, spec.d_head));
  if (d_value != spec.d_head) {
    return Error(Code::kUnsupported, "value heads of %d beside key heads of %d", d_value,
                 spec.d_head);
  }
  HEARTH_ASSIGN(spec.norm_eps, facts.Real("attention.layer_norm_rms_epsilon", 0, 1));
  HEARTH_ASSIGN(spec.vocab_size, facts.IntOr("vocab_size", 1, kMaxVocab, 0));
  return Status();
}

Status ReadFfn(const Facts& facts, ModelSpec& spec) {
  const bool moe = spec.family == Family::kGptOss || spec.family == Family::kQwen3Moe;
  if (!moe) {
    HEARTH_ASSIGN(const int experts, facts.IntOr("expert_count", 0, kMaxExperts, 0));
    if (experts > 0) {
      return Error(Code::kUnsupported, "a %s model with %d experts", NameOf(spec.family), experts);
    }
    HEARTH_ASSIGN(spec.d_ff, facts.Int("feed_forward_length", 1, kMaxWidth));
    return Status();
  }
  HEARTH_ASSIGN(spec.d_ff, facts.IntOr("feed_forward_length", 1, kMaxWidth, 0));
  HEARTH_ASSIGN(spec.n_experts, facts.Int("expert_count", 1, kMaxExperts));
  HEARTH_ASSIGN(spec.n_active_experts, facts.Int("expert_used_count", 1, kMaxExperts));
  // Older gpt-oss files state the experts' width only as the feed-forward length.
  if (spec.family == Family::kGptOss) {
    HEARTH_ASSIGN(spec.d_ff_expert,
                  facts.IntOr("expert_feed_forward_length", 1, kMaxWidth, spec.d_ff));
  } else {
    HEARTH_ASSIGN(spec.d_ff_expert, facts.Int("expert_feed_forward_length", 1, kMaxWidth));
  }
  spec.renormalise_experts = spec.family == Family::kQwen3Moe;
  return Status();
}

Status ReadYarn(const Facts& facts, RopeSpec& rope) {
  rope.scaling = RopeScaling::kYarn;
  HEARTH_ASSIGN(rope.original_context,
                facts.Int("rope.scaling.original_context_length", 1, kMaxContext));
  HEARTH_ASSIGN(rope.beta_fast, facts.RealOr("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32));
  HEARTH_ASSIGN(rope.beta_slow, facts.RealOr("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1));
  HEARTH_ASSIGN(const double extra, facts.RealOr("rope.scaling.attn_factor", 1e-3, 1e3, 1));
  rope.concentration = extra * YarnConcentration(rope.factor);
  return Status();
}

Status ReadDivisors(const WeightFile& file, RopeSpec& rope) {
  constexpr std::string_view kName = "rope_freqs.weight";
  if (!file.Has(kName)) return Status();
  HEARTH_ASSIGN(const TensorView tensor, file.Find(kName));
  if (tensor.dtype != DType::kF32 || tensor.rank != 1 || tensor.shape[0] != rope.n_dims / 2) {
    return Error(Code::kCorrupt, "%s: expected F32 [%d], found %s %s", kName.data(),
                 rope.n_dims / 2, NameOf(tensor.dtype), ShapeText(tensor).c_str());
  }
  if (rope.scaling != RopeScaling::kNone) {
    return Error(Code::kUnsupported, "%s beside another rope scaling", kName.data());
  }
  rope.scaling = RopeScaling::kDivisors;
  rope.divisors.resize(static_cast<size_t>(tensor.shape[0]));
  DecodeBlocks(tensor.dtype, tensor.bytes.data(), tensor.shape[0], rope.divisors.data());
  for (const float divisor : rope.divisors) {
    if (!(divisor > 0 && divisor < 1e9f)) {
      return Error(Code::kCorrupt, "%s: %g is no frequency divisor", kName.data(),
                   static_cast<double>(divisor));
    }
  }
  return Status();
}

Status ReadRope(const Facts& facts, const WeightFile& file, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  // The converter permutes q and k of llama files so that neighbours pair up.
  rope.pairing = spec.family == Family::kLlama ? RopePairing::kNeighbours : RopePairing::kHalves;
  rope.n_dims = spec.d_head;
  if (spec.family == Family::kLlama) {
    HEARTH_ASSIGN(rope.n_dims, facts.IntOr("rope.dimension_count", 2, kMaxHead, spec.d_head));
  }
  HEARTH_ASSIGN(rope.theta, facts.RealOr("rope.freq_base", 1.001, 1e12, 10000));
  HEARTH_ASSIGN(const std::string kind, facts.TextOr("rope.scaling.type", "none"));
  HEARTH_ASSIGN(rope.factor, facts.RealOr("rope.scaling.factor", 1e-6, 1e6, 1));
  if (kind == "yarn") {
    HEARTH_TRY(ReadYarn(facts, rope));
  } else if (kind == "linear") {
    rope.scaling = rope.factor == 1 ? RopeScaling::kNone : RopeScaling::kLinear;
  } else if (kind != "none") {
    return Error(Code::kUnsupported, "rope.scaling.type %s", Quoted(kind).c_str());
  }
  return ReadDivisors(file, rope);
}

Status ReadGptOss(const Facts& facts, ModelSpec& spec) {
  HEARTH_ASSIGN(const int window, facts.Int("attention.sliding_window", 1, kMaxContext));
  HEARTH_ASSIGN(const int period,
                facts.IntOr("attention.sliding_window_pattern", 1, kMaxLayers, 2));
  if (period != 2) {
    return Error(Code::kUnsupported, "attention.sliding_window_pattern %d; gpt-oss has 2", period);
  }
  AlternateWindows(spec, window);
  // GGUF cannot say it, but gpt-oss was trained with unrounded bounds; rounding them turns some
  // pairs by up to 76 % too much.
  spec.rope.yarn_truncate = false;
  return Status();
}

}  // namespace

Result<ModelSpec> DescribeGguf(const WeightFile& file) {
  const GgufFacts general(*file.metadata(), "general.");
  HEARTH_ASSIGN(const std::string architecture, general.TextOr("architecture", ""));
  ModelSpec spec;
  HEARTH_ASSIGN(spec.family, FamilyOf(architecture));
  HEARTH_ASSIGN(spec.name, general.TextOr("name", ""));
  const GgufFacts facts(*file.metadata(), architecture + ".");
  const auto read = [&]() -> Status {
    HEARTH_TRY(ReadShape(facts, spec));
    HEARTH_TRY(ReadFfn(facts, spec));
    HEARTH_TRY(ReadRope(facts, file, spec));
    ApplyFamily(spec);
    if (spec.family == Family::kGptOss) HEARTH_TRY(ReadGptOss(facts, spec));
    return Status();
  };
  HEARTH_TRY(read().Within("metadata of " + architecture));
  spec.tied_head = !file.Has("output.weight");
  // A qwen3moe layer without a router is a dense one.
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (spec.family != Family::kQwen3Moe) break;
    if (!file.Has("blk." + std::to_string(i) + ".ffn_gate_inp.weight")) {
      spec.layers[i].router = RouterKind::kNone;
    }
  }
  return spec;
}

}  // namespace hearth
