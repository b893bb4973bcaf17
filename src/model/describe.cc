// SPDX-License-Identifier: Apache-2.0
#include "model/describe.h"

#include <cmath>

namespace hearth {

const char* NameOf(Family family) {
  switch (family) {
    case Family::kGptOss:
      return "gpt-oss";
    case Family::kLlama:
      return "llama";
    case Family::kQwen2:
      return "qwen2";
    case Family::kQwen3:
      return "qwen3";
    case Family::kQwen3Moe:
      return "qwen3moe";
  }
  return "?";
}

void ApplyFamily(ModelSpec& spec) {
  spec.attention_scale = 1 / std::sqrt(static_cast<double>(spec.d_head));
  const bool moe = spec.family == Family::kGptOss || spec.family == Family::kQwen3Moe;
  RouterKind router = RouterKind::kNone;
  if (moe) {
    router = spec.family == Family::kGptOss ? RouterKind::kTopKThenSoftmax
                                            : RouterKind::kSoftmaxThenTopK;
  }
  for (LayerSpec& layer : spec.layers) layer.router = router;
  if (spec.family == Family::kGptOss) {
    spec.ffn = FfnKind::kClampedSwiglu;
    spec.swiglu_alpha = 1.702;
    spec.swiglu_limit = 7.0;
  }
}

void AlternateWindows(ModelSpec& spec, int window) {
  for (size_t i = 0; i < spec.layers.size(); i += 2) spec.layers[i].window = window;
}

Status CheckSpec(const ModelSpec& spec) {
  if (spec.n_heads % spec.n_kv_heads != 0) {
    return Error(Code::kCorrupt, "%d attention heads cannot share %d KV heads evenly", spec.n_heads,
                 spec.n_kv_heads);
  }
  const RopeSpec& rope = spec.rope;
  if (rope.n_dims % 2 != 0 || rope.n_dims > spec.d_head || rope.n_dims <= 0) {
    return Error(Code::kCorrupt, "rope turns %d values of a head of %d; expected an even number",
                 rope.n_dims, spec.d_head);
  }
  if (rope.scaling == RopeScaling::kLlama3 && !(rope.high_freq_factor > rope.low_freq_factor)) {
    return Error(Code::kCorrupt, "rope: high_freq_factor %g must be above low_freq_factor %g",
                 rope.high_freq_factor, rope.low_freq_factor);
  }
  if (spec.n_active_experts > spec.n_experts) {
    return Error(Code::kCorrupt, "%d active experts of only %d", spec.n_active_experts,
                 spec.n_experts);
  }
  return Status();
}

Result<ModelSpec> Describe(const WeightFile& file) {
  const auto describe = [&file]() -> Result<ModelSpec> {
    switch (file.format()) {
      case WeightFormat::kGguf:
        return DescribeGguf(file);
      case WeightFormat::kHuggingFace:
        return DescribeHuggingFace(*file.config()).Within("config.json");
      case WeightFormat::kOpenAi:
        return DescribeOpenAi(*file.config()).Within("config.json");
    }
    return Error(Code::kUnsupported, "unknown checkpoint format");
  };
  HEARTH_ASSIGN(ModelSpec spec, describe());
  HEARTH_TRY(CheckSpec(spec));
  return spec;
}

}  // namespace hearth
