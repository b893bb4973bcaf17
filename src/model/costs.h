// SPDX-License-Identifier: Apache-2.0
// What a model costs to hold and to run, from its shapes alone.
#pragma once
#include <cstdint>
#include <functional>

#include "model/model.h"
namespace hearth {

enum class WeightUse : unsigned char {
  kEmbedding,
  kProjection,  // q, k, v and the attention's output
  kRouter,
  kFeedForward,
  kHead,
  kOther,  // norms, sinks
};
struct WeightPlace {
  WeightUse use = WeightUse::kOther;
  int layer = -1;  // or -1 outside the layers
  // The part that one decoded token reads: 1 when dense, the active share for experts, one row of
  // the embedding.
  double share = 1;
};
// Calls `visit` for every weight of the model once; biases go with their matrix, and an embedding
// that is also the head is a head.
void VisitWeights(
    const Model& model,
    const std::function<void(const MatView& weight, const WeightPlace& place)>& visit);

struct ModelCosts {
  int64_t parameters = 0;
  int64_t active_parameters = 0;   // that one token multiplies with
  int64_t weight_bytes = 0;        // in the file's own formats
  int64_t decode_bytes = 0;        // weights read per decoded token, alone and at no context
  int64_t kv_bytes_per_token = 0;  // f16 K and V of the layers that see everything
  int64_t kv_window_bytes = 0;     // f16 K and V of the window layers, per sequence, at most
};
ModelCosts CostsOf(const Model& model);
// KV memory of one sequence of `tokens` tokens.
int64_t KvBytes(const ModelCosts& costs, int64_t tokens);

// Walks every weight byte once and refuses values that are no numbers (an MXFP4 scale of 255, a
// NaN). Touches all pages of the file, so loading calls it and inspecting does not.
Status CheckWeights(const Model& model);

}  // namespace hearth
