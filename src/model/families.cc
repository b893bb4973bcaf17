// SPDX-License-Identifier: Apache-2.0
// The list of built-in families, and which of a list a file belongs to.
#include <string>

#include "model/family.h"

namespace hearth {
namespace {

using NameInLayout = std::string_view (*)(const ModelFamily& family);

std::string_view GgufName(const ModelFamily& family) {
  return family.gguf_names.empty() ? std::string_view() : family.gguf_names.front();
}
std::string_view ConfigName(const ModelFamily& family) { return family.config_name; }

// "llama, qwen2 and qwen3": the families that have a name in a layout.
std::string Listed(FamilyList families, NameInLayout name_of) {
  std::vector<std::string_view> names;
  for (const ModelFamily* family : families) {
    if (!name_of(*family).empty()) names.push_back(name_of(*family));
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text.empty() ? "none" : text;
}

Result<const ModelFamily*> OfGguf(const WeightFile& file, FamilyList families) {
  const GgufFacts general(*file.metadata(), "general.");
  HEARTH_ASSIGN(const std::string name, general.TextOr("architecture", ""));
  for (const ModelFamily* family : families) {
    for (const std::string_view known : family->gguf_names) {
      if (known == name) return family;
    }
  }
  return Error(Code::kUnsupported, "architecture %s is not supported; supported: %s",
               Quoted(name).c_str(), Listed(families, GgufName).c_str());
}

Result<const ModelFamily*> OfConfig(const WeightFile& file, FamilyList families) {
  HEARTH_ASSIGN(const std::string name, JsonFacts(*file.config()).TextOr("model_type", ""));
  for (const ModelFamily* family : families) {
    if (!name.empty() && family->config_name == name) return family;
  }
  return Error(Code::kUnsupported, "model_type %s is not supported; supported: %s",
               Quoted(name).c_str(), Listed(families, ConfigName).c_str());
}

}  // namespace

FamilyList BuiltInFamilies() {
  static const ModelFamily* const kFamilies[] = {
      &kGptOssFamily, &kLlamaFamily, &kQwen2Family, &kQwen3Family, &kQwen3MoeFamily,
  };
  return kFamilies;
}

Result<const ModelFamily*> FamilyOf(const WeightFile& file, FamilyList families) {
  switch (file.format()) {
    case WeightFormat::kGguf:
      return OfGguf(file, families);
    case WeightFormat::kHuggingFace:
      return OfConfig(file, families).Within("config.json");
    case WeightFormat::kOpenAi:
      for (const ModelFamily* family : families) {
        if (family->describe_openai != nullptr) return family;
      }
      return Error(Code::kUnsupported, "OpenAI's checkpoint layout is not supported");
  }
  return Error(Code::kUnsupported, "this checkpoint format is not supported");
}

Status CheckRequired(const Model& model, const ModelFamily& family) {
  const RequiredWeights& required = family.required;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& w = model.layers[i];
    const char* missing = nullptr;
    if (required.qkv_bias && (!w.q_bias.present() || !w.k_bias.present() || !w.v_bias.present())) {
      missing = "q, k, v bias";
    }
    if (required.out_bias && !w.out_bias.present()) missing = "attention output bias";
    if (required.sinks && !w.sinks.present()) missing = "attention sinks";
    if (required.router_bias && !w.router_bias.present()) missing = "router bias";
    for (const FfnWeights& ffn : w.ffn) {
      const bool whole =
          ffn.gate_bias.present() && ffn.up_bias.present() && ffn.down_bias.present();
      if (required.expert_bias && !whole) missing = "expert biases";
    }
    if (required.qk_norm && (!w.q_norm.present() || !w.k_norm.present())) {
      missing = "q and k norms";
    }
    if (missing == nullptr) continue;
    return Error(Code::kCorrupt, "layer %zu: a %s model needs %s, but the file does not contain it",
                 i, family.name, missing);
  }
  return Status();
}

}  // namespace hearth
