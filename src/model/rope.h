// SPDX-License-Identifier: Apache-2.0
// Rotary positions: from a RopeSpec to the angle each pair turns per position.
#pragma once
#include <span>
#include <vector>

#include "model/model.h"
namespace hearth {

// [n_dims / 2] radians per position, scaling applied. The angle at a position is position *
// frequency in double, never a product built up step by step.
std::vector<double> RopeFrequencies(const RopeSpec& rope);

// cos and sin, [n_dims / 2] each, of the angles at a position, times the concentration.
void RopeTurns(std::span<const double> frequencies, double concentration, int position, float* cos,
               float* sin);

// 0.1 ln(factor) + 1: YaRN's usual concentration.
double YarnConcentration(double factor);

}  // namespace hearth
