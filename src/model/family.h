// SPDX-License-Identifier: Apache-2.0
// What Hearth knows about each model family, one row per family. A new family is a file that fills
// in a row and a line in families.cc, or a row that a program outside src/ hands to LoadModel.
// Nothing else asks which family a model belongs to: what matters later stands in the ModelSpec.
#pragma once
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "model/bind.h"
#include "model/facts.h"
#include "model/model.h"
namespace hearth {

// Weights that a family's formula needs in every layer and that look-ups treat as optional.
struct RequiredWeights {
  bool qkv_bias = false, out_bias = false, sinks = false;
  bool qk_norm = false;
  bool router_bias = false, expert_bias = false;
};

// What a GGUF file says about itself.
struct GgufSource {
  const Facts& facts;      // metadata keys without the architecture's prefix
  const WeightFile& file;  // for what only the presence or content of a tensor says
};

// The functions come in pairs, one pair per checkpoint layout; null where the family was never
// published in that layout. `describe` fills in everything about the spec except its family and
// name; an attention scale of 0 becomes 1 / sqrt(d_head). `bind` finds the weights of that spec.
// The building blocks are in read_gguf.h, read_config.h and bind.h.
struct ModelFamily {
  const char* name;
  std::span<const std::string_view> gguf_names;  // of general.architecture, the usual one first
  std::string_view config_name;                  // of config.json's model_type
  RequiredWeights required = {};

  Status (*describe_gguf)(const GgufSource& source, ModelSpec& spec) = nullptr;
  Status (*bind_gguf)(const Binder& binder, Model& model) = nullptr;

  Status (*describe_hugging_face)(const Json& config, ModelSpec& spec) = nullptr;
  Status (*bind_hugging_face)(const Binder& binder, Model& model) = nullptr;

  // OpenAI's layout names no family, so at most one family of a list may read it.
  Status (*describe_openai)(const Json& config, ModelSpec& spec) = nullptr;
  Status (*bind_openai)(const Binder& binder, Model& model) = nullptr;
};

// The rows, each in a file of its own.
extern const ModelFamily kGptOssFamily, kLlamaFamily, kQwen2Family, kQwen3Family, kQwen3MoeFamily;

// The family of `families` that `file` names. kUnsupported lists the ones that could be named.
Result<const ModelFamily*> FamilyOf(const WeightFile& file, FamilyList families);

// Which part of `family.required` the model lacks, and in which layer.
Status CheckRequired(const Model& model, const ModelFamily& family);

}  // namespace hearth
