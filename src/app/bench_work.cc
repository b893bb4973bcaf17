// SPDX-License-Identifier: Apache-2.0
#include "app/bench_work.h"

#include <algorithm>
#include <cmath>

#include "tensor/tensor.h"

namespace hearth {

WorkModel::WorkModel(const Model& model) {
  VisitWeights(model, [&](const MatView& weight, double share) {
    const Part part{static_cast<double>(weight.rows) * weight.cols,
                    static_cast<double>(BytesOf(weight))};
    const bool is_head = weight.data == model.head.data;
    if (!is_head && weight.data == model.embedding.data) return;
    Part& sum = is_head ? head_ : share < 1 ? experts_ : dense_;
    sum.values += part.values;
    sum.bytes += part.bytes;
  });
  const ModelSpec& spec = model.spec;
  row_bytes_ = static_cast<double>(BytesOf(model.embedding)) / spec.vocab_size;
  if (spec.n_experts > 0) {
    active_share_ = static_cast<double>(spec.n_active_experts) / spec.n_experts;
  }
  head_values_ = static_cast<double>(spec.n_heads) * spec.d_head;
  for (const LayerSpec& layer : spec.layers) ++(layer.window > 0 ? window_layers_ : full_layers_);
}

void WorkModel::AddWeights(int tokens, int rows_of_logits, Work& work) const {
  const double touched = 1 - std::pow(1 - active_share_, tokens);
  work.bytes += dense_.bytes + experts_.bytes * touched + tokens * row_bytes_;
  work.flops += 2.0 * tokens * (dense_.values + experts_.values * active_share_);
  if (rows_of_logits == 0) return;
  work.bytes += head_.bytes;
  work.flops += 2.0 * rows_of_logits * head_.values;
}

void WorkModel::AddAttention(int first, int count, const KvLayout& kv, Work& work) const {
  const double end = first + count;
  const double window = kv.window.window;
  work.bytes += end * static_cast<double>(kv.full.block_bytes) / kBlockTokens;
  work.bytes +=
      std::min(end, window + count) * static_cast<double>(kv.window.block_bytes) / kBlockTokens;
  // Each visible position: one product with K and one with V per value of every query head.
  for (int position = first; position < first + count; ++position) {
    const double seen = position + 1;
    work.flops +=
        4 * head_values_ * (full_layers_ * seen + window_layers_ * std::min(seen, window));
  }
}

Work WorkModel::Of(const BenchCase& what, const KvLayout& kv, int chunk) const {
  Work work;
  if (what.kind == BenchKind::kPrefill) {
    for (int first = 0; first < what.tokens; first += chunk) {
      const int count = std::min(chunk, what.tokens - first);
      AddWeights(count, first + count == what.tokens ? 1 : 0, work);
      AddAttention(first, count, kv, work);
    }
    return work;
  }
  for (int step = 0; step < what.tokens; ++step) {
    AddWeights(what.sequences, what.sequences, work);
    Work attention;
    AddAttention(what.depth + step, 1, kv, attention);
    work.bytes += what.sequences * attention.bytes;
    work.flops += what.sequences * attention.flops;
  }
  return work;
}

}  // namespace hearth
