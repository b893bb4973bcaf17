// SPDX-License-Identifier: Apache-2.0
// Which layers stand for all of them.
#pragma once
#include <span>
#include <vector>
namespace hearth {

// Ascending indices, spread evenly over the model: files of mixed formats give some layers more
// bits than others. As few as hold `least_bytes`, in runs of `period` neighbours, so that layers
// that alternate (windows) are there in their proportion; all of them when they are too small.
std::vector<int> SampledLayers(std::span<const double> layer_bytes, int period, double least_bytes);

}  // namespace hearth
