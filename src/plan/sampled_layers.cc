// SPDX-License-Identifier: Apache-2.0
#include "plan/sampled_layers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hearth {

std::vector<int> SampledLayers(std::span<const double> layer_bytes, int period,
                               double least_bytes) {
  const auto count = static_cast<int>(layer_bytes.size());
  const double all = std::accumulate(layer_bytes.begin(), layer_bytes.end(), 0.0);
  const int runs = std::max(1, count / period);
  const double share = all > 0 ? std::min(1.0, least_bytes / all) : 1;
  // Two runs at least: a first and a last layer are often special.
  const int wanted = std::max(2, static_cast<int>(std::ceil(share * runs)));
  std::vector<int> layers;
  if (wanted >= runs) {
    layers.resize(layer_bytes.size());
    std::iota(layers.begin(), layers.end(), 0);
    return layers;
  }
  for (int i = 0; i < wanted; ++i) {
    const int run = static_cast<int>((i + 0.5) * runs / wanted);
    for (int j = 0; j < period; ++j) layers.push_back(run * period + j);
  }
  return layers;
}

}  // namespace hearth
