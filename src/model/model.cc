// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "model/bind.h"
#include "model/describe.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

// GGUF need not state the vocabulary's size; the embedding has a row for each token.
Status TakeVocabulary(const WeightFile& file, ModelSpec& spec) {
  if (spec.vocab_size != 0) return Status();
  HEARTH_ASSIGN(const TensorView embedding, file.Find("token_embd.weight"));
  if (embedding.rank != 2 || embedding.shape[0] > kMaxVocab) {
    return Error(Code::kCorrupt, "token_embd.weight: expected shape [vocabulary, %d], found %s",
                 spec.d_model, ShapeText(embedding).c_str());
  }
  spec.vocab_size = static_cast<int>(embedding.shape[0]);
  return Status();
}

// Weights that a family's formula needs and an "if any" look-up may have passed over.
Status CheckComplete(const Model& model) {
  const Family family = model.spec.family;
  const bool gpt_oss = family == Family::kGptOss;
  const bool qk_norm = family == Family::kQwen3 || family == Family::kQwen3Moe;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& w = model.layers[i];
    const char* missing = nullptr;
    if (gpt_oss || family == Family::kQwen2) {
      if (!w.q_bias.present() || !w.k_bias.present() || !w.v_bias.present())
        missing = "q, k, v bias";
    }
    if (gpt_oss) {
      if (!w.out_bias.present()) missing = "attention output bias";
      if (!w.sinks.present()) missing = "attention sinks";
      if (!w.router_bias.present()) missing = "router bias";
      for (const FfnWeights& ffn : w.ffn) {
        if (!ffn.gate_bias.present() || !ffn.up_bias.present() || !ffn.down_bias.present()) {
          missing = "expert biases";
        }
      }
    }
    if (qk_norm && (!w.q_norm.present() || !w.k_norm.present())) missing = "q and k norms";
    if (missing == nullptr) continue;
    return Error(Code::kCorrupt, "layer %zu: a %s model needs %s, and the file has none", i,
                 NameOf(family), missing);
  }
  return Status();
}

}  // namespace

Result<Model> LoadModel(std::shared_ptr<const WeightFile> file) {
  Model model;
  model.file = std::move(file);
  HEARTH_ASSIGN(model.spec, Describe(*model.file));
  HEARTH_TRY(TakeVocabulary(*model.file, model.spec));
  // Each layer has tensors of its own, so a count above theirs is a lie; it would cost memory.
  if (model.spec.layers.size() > model.file->tensors().size()) {
    return Error(Code::kCorrupt, "%zu layers, but only %zu tensors", model.spec.layers.size(),
                 model.file->tensors().size());
  }
  model.layers.resize(model.spec.layers.size());
  const Binder binder(*model.file);
  switch (model.file->format()) {
    case WeightFormat::kGguf:
      HEARTH_TRY(BindGguf(binder, model));
      break;
    case WeightFormat::kHuggingFace:
      HEARTH_TRY(BindHuggingFace(binder, model));
      break;
    case WeightFormat::kOpenAi:
      HEARTH_TRY(BindOpenAi(binder, model));
      break;
  }
  HEARTH_TRY(CheckComplete(model));
  return model;
}

}  // namespace hearth
