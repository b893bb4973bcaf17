// SPDX-License-Identifier: Apache-2.0
// Where a key is optional, the fallback is what the format's writers assume.
#include "model/read_gguf.h"

#include <string>

#include "model/describe.h"
#include "model/rope.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

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
    return Error(Code::kUnsupported, "%s together with another rope scaling is not supported",
                 kName.data());
  }
  rope.scaling = RopeScaling::kDivisors;
  rope.divisors.resize(static_cast<size_t>(tensor.shape[0]));
  DecodeBlocks(tensor.dtype, tensor.bytes.data(), tensor.shape[0], rope.divisors.data());
  for (const float divisor : rope.divisors) {
    if (!(divisor > 0 && divisor < 1e9f)) {
      return Error(Code::kCorrupt, "%s: %g is not a valid frequency divisor", kName.data(),
                   static_cast<double>(divisor));
    }
  }
  return Status();
}

}  // namespace

Status ReadGgufShape(const GgufSource& source, ModelSpec& spec) {
  const Facts& facts = source.facts;
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
    return Error(Code::kUnsupported,
                 "value heads of size %d with key heads of size %d are not supported", d_value,
                 spec.d_head);
  }
  HEARTH_ASSIGN(spec.norm_eps, facts.Real("attention.layer_norm_rms_epsilon", 0, 1));
  HEARTH_ASSIGN(spec.vocab_size, facts.IntOr("vocab_size", 1, kMaxVocab, 0));
  spec.tied_head = !source.file.Has("output.weight");
  return Status();
}

Status ReadGgufDense(const GgufSource& source, ModelSpec& spec) {
  const Facts& facts = source.facts;
  HEARTH_ASSIGN(const int experts, facts.IntOr("expert_count", 0, kMaxExperts, 0));
  if (experts > 0) {
    return Error(Code::kUnsupported, "%s models with %d experts are not supported",
                 spec.family.c_str(), experts);
  }
  HEARTH_ASSIGN(spec.d_ff, facts.Int("feed_forward_length", 1, kMaxWidth));
  return Status();
}

Status ReadGgufExperts(const GgufSource& source, const GgufExperts& experts, ModelSpec& spec) {
  const Facts& facts = source.facts;
  HEARTH_ASSIGN(spec.d_ff, facts.IntOr("feed_forward_length", 1, kMaxWidth, 0));
  HEARTH_ASSIGN(spec.n_experts, facts.Int("expert_count", 1, kMaxExperts));
  HEARTH_ASSIGN(spec.n_active_experts, facts.Int("expert_used_count", 1, kMaxExperts));
  constexpr std::string_view kWidth = "expert_feed_forward_length";
  if (experts.width_may_be_missing) {
    HEARTH_ASSIGN(spec.d_ff_expert, facts.IntOr(kWidth, 1, kMaxWidth, spec.d_ff));
  } else {
    HEARTH_ASSIGN(spec.d_ff_expert, facts.Int(kWidth, 1, kMaxWidth));
  }
  SetRouter(spec, experts.router);
  return Status();
}

Status ReadGgufRope(const GgufSource& source, RopePairing pairing, ModelSpec& spec) {
  const Facts& facts = source.facts;
  RopeSpec& rope = spec.rope;
  rope.pairing = pairing;
  if (rope.n_dims == 0) rope.n_dims = spec.d_head;
  HEARTH_ASSIGN(rope.theta, facts.RealOr("rope.freq_base", 1.001, 1e12, 10000));
  HEARTH_ASSIGN(const std::string kind, facts.TextOr("rope.scaling.type", "none"));
  HEARTH_ASSIGN(rope.factor, facts.RealOr("rope.scaling.factor", 1e-6, 1e6, 1));
  if (kind == "yarn") {
    HEARTH_TRY(ReadYarn(facts, rope));
  } else if (kind == "linear") {
    rope.scaling = rope.factor == 1 ? RopeScaling::kNone : RopeScaling::kLinear;
  } else if (kind != "none") {
    return Error(Code::kUnsupported, "rope.scaling.type %s is not supported", Quoted(kind).c_str());
  }
  return ReadDivisors(source.file, rope);
}

Status ReadGgufPlain(const GgufSource& source, ModelSpec& spec) {
  HEARTH_TRY(ReadGgufShape(source, spec));
  HEARTH_TRY(ReadGgufDense(source, spec));
  return ReadGgufRope(source, RopePairing::kHalves, spec);
}

}  // namespace hearth
