// SPDX-License-Identifier: Apache-2.0
#include "bench/work.h"

#include <algorithm>
#include <cmath>

#include "tensor/tensor.h"

namespace hearth {
namespace {

StepPhase PhaseOf(WeightUse use) {
  switch (use) {
    case WeightUse::kProjection:
      return StepPhase::kProjections;
    case WeightUse::kRouter:
      return StepPhase::kRouter;
    case WeightUse::kFeedForward:
      return StepPhase::kFeedForward;
    case WeightUse::kHead:
      return StepPhase::kHead;
    case WeightUse::kEmbedding:
    case WeightUse::kOther:
      break;
  }
  return StepPhase::kSmall;
}

}  // namespace

Work PhaseWork::sum() const {
  Work sum;
  for (const Work& work : phases) {
    sum.bytes += work.bytes;
    sum.flops += work.flops;
  }
  return sum;
}

WorkModel::WorkModel(const Model& model) {
  const ModelSpec& spec = model.spec;
  ffn_bytes_.resize(spec.layers.size());
  VisitWeights(model, [&](const MatView& weight, const WeightPlace& place) {
    if (place.use == WeightUse::kEmbedding) return;  // by rows, below
    const auto bytes = static_cast<double>(BytesOf(weight));
    Part& part = place.share < 1 ? experts_ : parts_[static_cast<size_t>(PhaseOf(place.use))];
    part.values += static_cast<double>(weight.rows) * weight.cols;
    part.bytes += bytes;
    if (place.use != WeightUse::kFeedForward) return;
    const auto layer = static_cast<size_t>(place.layer);
    ffn_bytes_[layer] += bytes / static_cast<double>(model.layers[layer].ffn.size());
  });
  row_bytes_ = static_cast<double>(BytesOf(model.embedding)) / spec.vocab_size;
  has_experts_ = spec.n_experts > 0;
  if (has_experts_) {
    active_share_ = static_cast<double>(spec.n_active_experts) / spec.n_experts;
  }
  head_values_ = static_cast<double>(spec.n_heads) * spec.d_head;
  for (const LayerSpec& layer : spec.layers) ++layers_[layer.window];
}

void WorkModel::AddWeights(int tokens, int rows_of_logits, PhaseWork& work) const {
  for (size_t i = 0; i < kNumPhases; ++i) {
    const bool is_head = static_cast<StepPhase>(i) == StepPhase::kHead;
    if (is_head && rows_of_logits == 0) continue;
    work.phases[i].bytes += parts_[i].bytes;
    work.phases[i].flops += 2.0 * (is_head ? rows_of_logits : tokens) * parts_[i].values;
  }
  const double touched = 1 - std::pow(1 - active_share_, tokens);
  work[StepPhase::kFeedForward].bytes += experts_.bytes * touched;
  work[StepPhase::kFeedForward].flops += 2.0 * tokens * experts_.values * active_share_;
  work[StepPhase::kSmall].bytes += tokens * row_bytes_;
}

Work WorkModel::AttentionOf(int first, int count, const KvLayout& kv) const {
  const double end = first + count;
  Work work;
  for (const KvGroupLayout& group : kv.groups) {
    const double seen = group.window == 0 ? end : std::min<double>(end, group.window + count);
    work.bytes += seen * static_cast<double>(group.block_bytes) / kv.block_tokens;
  }
  // Each visible position: one product with K and one with V per value of every query head.
  for (int position = first; position < first + count; ++position) {
    for (const auto& [window, layers] : layers_) {
      const int seen = window == 0 ? position + 1 : std::min(position + 1, window);
      work.flops += 4 * head_values_ * layers * seen;
    }
  }
  return work;
}

PhaseWork WorkModel::ByPhase(const BenchCase& what, const KvLayout& kv, int chunk) const {
  PhaseWork work;
  Work& all_attention = work[StepPhase::kAttention];
  const auto attend = [&](int sequences, int first, int count) {
    const Work attention = AttentionOf(first, count, kv);
    all_attention.bytes += sequences * attention.bytes;
    all_attention.flops += sequences * attention.flops;
  };
  if (what.kind == BenchKind::kPrefill) {
    for (int first = 0; first < what.tokens; first += chunk) {
      const int count = std::min(chunk, what.tokens - first);
      AddWeights(count, first + count == what.tokens ? 1 : 0, work);
      attend(1, first, count);
    }
    return work;
  }
  for (int step = 0; step < what.tokens; ++step) {
    AddWeights(what.sequences, what.sequences, work);
    attend(what.sequences, what.depth + step, 1);
  }
  return work;
}

double WorkModel::ExpertBytes(std::span<const int64_t> experts_read) const {
  double bytes = 0;
  for (size_t i = 0; i < std::min(experts_read.size(), ffn_bytes_.size()); ++i) {
    bytes += static_cast<double>(experts_read[i]) * ffn_bytes_[i];
  }
  return bytes;
}

}  // namespace hearth
