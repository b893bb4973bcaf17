// SPDX-License-Identifier: Apache-2.0
#include "model/describe.h"

#include <cmath>
#include <string>

namespace hearth {
namespace {

Status NoReader(const ModelFamily& family, const WeightFile& file) {
  return Error(Code::kUnsupported, "%s models in the %s layout are not supported", family.name,
               NameOf(file.format()));
}

Status DescribeGguf(const WeightFile& file, const ModelFamily& family, ModelSpec& spec) {
  if (family.describe_gguf == nullptr) return NoReader(family, file);
  const GgufFacts general(*file.metadata(), "general.");
  HEARTH_ASSIGN(const std::string architecture, general.TextOr("architecture", ""));
  HEARTH_ASSIGN(spec.name, general.TextOr("name", ""));
  const GgufFacts facts(*file.metadata(), architecture + ".");
  return family.describe_gguf({facts, file}, spec).Within("metadata of " + architecture);
}

Status DescribeHuggingFace(const WeightFile& file, const ModelFamily& family, ModelSpec& spec) {
  if (family.describe_hugging_face == nullptr) return NoReader(family, file);
  HEARTH_ASSIGN(spec.name, JsonFacts(*file.config()).TextOr("_name_or_path", ""));
  return family.describe_hugging_face(*file.config(), spec);
}

Status DescribeByFormat(const WeightFile& file, const ModelFamily& family, ModelSpec& spec) {
  switch (file.format()) {
    case WeightFormat::kGguf:
      return DescribeGguf(file, family, spec);
    case WeightFormat::kHuggingFace:
      return DescribeHuggingFace(file, family, spec).Within("config.json");
    case WeightFormat::kOpenAi:
      return family.describe_openai(*file.config(), spec).Within("config.json");
  }
  return Error(Code::kUnsupported, "this checkpoint format is not supported");
}

}  // namespace

void SetRouter(ModelSpec& spec, RouterKind router) {
  for (LayerSpec& layer : spec.layers) layer.router = router;
}

void AlternateWindows(ModelSpec& spec, int window) {
  for (size_t i = 0; i < spec.layers.size(); i += 2) spec.layers[i].window = window;
}

Status CheckSpec(const ModelSpec& spec) {
  if (spec.n_heads % spec.n_kv_heads != 0) {
    return Error(
        Code::kCorrupt,
        "the number of attention heads, %d, is not a multiple of the number of KV heads, %d",
        spec.n_heads, spec.n_kv_heads);
  }
  const RopeSpec& rope = spec.rope;
  if (rope.n_dims % 2 != 0 || rope.n_dims > spec.d_head || rope.n_dims <= 0) {
    return Error(Code::kCorrupt,
                 "rope rotates %d values of a head of %d; expected an even number, at most the "
                 "size of the head",
                 rope.n_dims, spec.d_head);
  }
  if (rope.scaling == RopeScaling::kLlama3 && !(rope.high_freq_factor > rope.low_freq_factor)) {
    return Error(Code::kCorrupt, "rope: high_freq_factor %g must be above low_freq_factor %g",
                 rope.high_freq_factor, rope.low_freq_factor);
  }
  if (spec.n_active_experts > spec.n_experts) {
    return Error(Code::kCorrupt, "%d active experts, but only %d experts", spec.n_active_experts,
                 spec.n_experts);
  }
  return Status();
}

Result<ModelSpec> Describe(const WeightFile& file, const ModelFamily& family) {
  ModelSpec spec;
  spec.family = family.name;
  HEARTH_TRY(DescribeByFormat(file, family, spec));
  if (spec.attention_scale == 0) {
    spec.attention_scale = 1 / std::sqrt(static_cast<double>(spec.d_head));
  }
  HEARTH_TRY(CheckSpec(spec));
  return spec;
}

}  // namespace hearth
