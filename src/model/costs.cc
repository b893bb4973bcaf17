// SPDX-License-Identifier: Apache-2.0
#include "model/costs.h"

#include <algorithm>

#include "tensor/quant.h"

namespace hearth {
namespace {

constexpr int64_t kF16Bytes = 2;

Status CheckPlanesOf(const MatView& matrix) {
  for (int row = 0; row < matrix.rows; ++row) {
    const std::byte* data = matrix.data + row * matrix.row_bytes;
    const std::byte* scales = matrix.scales + row * matrix.scale_row_bytes;
    const auto blocks = static_cast<size_t>(matrix.cols / 32);
    HEARTH_TRY(
        CheckPlanes({data, blocks * 16}, {scales, blocks}).Within("row " + std::to_string(row)));
  }
  return Status();
}

}  // namespace

void VisitWeights(
    const Model& model,
    const std::function<void(const MatView& weight, const WeightPlace& place)>& visit) {
  const ModelSpec& spec = model.spec;
  const auto all = [&visit](std::initializer_list<const MatView*> weights, WeightPlace place) {
    for (const MatView* weight : weights) {
      if (weight->present()) visit(*weight, place);
    }
  };
  if (spec.tied_head) {
    all({&model.embedding}, {WeightUse::kHead});
  } else {
    all({&model.embedding}, {WeightUse::kEmbedding, -1, 1.0 / spec.vocab_size});
    all({&model.head}, {WeightUse::kHead});
  }
  all({&model.final_norm}, {WeightUse::kOther});
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& w = model.layers[i];
    const auto layer = static_cast<int>(i);
    all({&w.attn_norm, &w.q_norm, &w.k_norm, &w.sinks, &w.ffn_norm}, {WeightUse::kOther, layer});
    all({&w.q, &w.q_bias, &w.k, &w.k_bias, &w.v, &w.v_bias, &w.attn_out, &w.out_bias},
        {WeightUse::kProjection, layer});
    all({&w.router, &w.router_bias}, {WeightUse::kRouter, layer});
    const bool dense = spec.layers[i].router == RouterKind::kNone;
    const double share = dense ? 1.0 : static_cast<double>(spec.n_active_experts) / spec.n_experts;
    for (const FfnWeights& ffn : w.ffn) {
      all({&ffn.gate, &ffn.gate_bias, &ffn.up, &ffn.up_bias, &ffn.down, &ffn.down_bias},
          {WeightUse::kFeedForward, layer, share});
    }
  }
}

ModelCosts CostsOf(const Model& model) {
  ModelCosts costs;
  double active = 0, decode = 0;
  VisitWeights(model, [&](const MatView& weight, const WeightPlace& place) {
    const int64_t values = int64_t{weight.rows} * weight.cols;
    costs.parameters += values;
    costs.weight_bytes += BytesOf(weight);
    active += place.share * static_cast<double>(values);
    decode += place.share * static_cast<double>(BytesOf(weight));
  });
  costs.active_parameters = static_cast<int64_t>(active);
  costs.decode_bytes = static_cast<int64_t>(decode);
  const ModelSpec& spec = model.spec;
  const int64_t layer_bytes = 2 * kF16Bytes * spec.n_kv_heads * spec.d_head;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.window == 0) {
      costs.kv_bytes_per_token += layer_bytes;
    } else {
      costs.kv_window_bytes += layer_bytes * layer.window;
    }
  }
  return costs;
}

int64_t KvBytes(const ModelCosts& costs, int64_t tokens) {
  return costs.kv_bytes_per_token * tokens + costs.kv_window_bytes;
}

Status CheckWeights(const Model& model) {
  for (const NamedTensor& named : model.file->tensors()) {
    HEARTH_TRY(CheckBlocks(named.tensor.dtype, named.tensor.bytes).Within(named.name));
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    for (size_t e = 0; e < model.layers[i].ffn.size(); ++e) {
      const FfnWeights& ffn = model.layers[i].ffn[e];
      for (const MatView* matrix : {&ffn.gate, &ffn.up, &ffn.down}) {
        if (matrix->dtype != DType::kMxfp4Planes) continue;
        HEARTH_TRY(CheckPlanesOf(*matrix).Within(Printf("layer %zu, expert %zu", i, e)));
      }
    }
  }
  return Status();
}

}  // namespace hearth
