// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "model/bind.h"
#include "model/describe.h"
#include "model/family.h"
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

Status Bind(const ModelFamily& family, Model& model) {
  const Binder binder(*model.file);
  switch (model.file->format()) {
    case WeightFormat::kGguf:
      return family.bind_gguf(binder, model);
    case WeightFormat::kHuggingFace:
      return family.bind_hugging_face(binder, model);
    case WeightFormat::kOpenAi:
      return family.bind_openai(binder, model);
  }
  return Error(Code::kUnsupported, "this checkpoint format is not supported");
}

}  // namespace

Result<Model> LoadModel(std::shared_ptr<const WeightFile> file, FamilyList families) {
  Model model;
  model.file = std::move(file);
  HEARTH_ASSIGN(const ModelFamily* const family, FamilyOf(*model.file, families));
  HEARTH_ASSIGN(model.spec, Describe(*model.file, *family));
  HEARTH_TRY(TakeVocabulary(*model.file, model.spec));
  // Each layer has tensors of its own, so a count above theirs is a lie; it would cost memory.
  if (model.spec.layers.size() > model.file->tensors().size()) {
    return Error(Code::kCorrupt, "%zu layers, but only %zu tensors", model.spec.layers.size(),
                 model.file->tensors().size());
  }
  model.layers.resize(model.spec.layers.size());
  HEARTH_TRY(Bind(*family, model));
  HEARTH_TRY(CheckRequired(model, *family));
  return model;
}

}  // namespace hearth
