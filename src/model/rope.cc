// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hearth {
namespace {

// The (fractional) pair whose wave turns `rotations` times within the original context.
double PairOfRotations(const RopeSpec& rope, double rotations) {
  const double ratio = rope.original_context / (rotations * 2 * std::numbers::pi);
  return rope.n_dims * std::log(ratio) / (2 * std::log(rope.theta));
}

void ScaleYarn(const RopeSpec& rope, std::vector<double>& frequencies) {
  double low = PairOfRotations(rope, rope.beta_fast);
  double high = PairOfRotations(rope, rope.beta_slow);
  if (rope.yarn_truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope.n_dims - 1.0);
  const double span = std::max(high - low, 0.001);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / span, 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

void ScaleLlama3(const RopeSpec& rope, std::vector<double>& frequencies) {
  const double longest = rope.original_context / rope.low_freq_factor;
  const double shortest = rope.original_context / rope.high_freq_factor;
  for (double& frequency : frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < shortest) continue;
    if (wavelength > longest) {
      frequency /= rope.factor;
      continue;
    }
    const double smooth = (rope.original_context / wavelength - rope.low_freq_factor) /
                          (rope.high_freq_factor - rope.low_freq_factor);
    frequency = (1 - smooth) * frequency / rope.factor + smooth * frequency;
  }
}

}  // namespace

// In extended precision: the x87 functions are the same code on every x86 processor, where the
// double ones may pick a variant with fused multiply-adds and differ in the last bit.
void RopeTurns(std::span<const double> frequencies, double concentration, int position, float* cos,
               float* sin) {
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const long double angle =
        static_cast<long double>(position) * static_cast<long double>(frequencies[i]);
    cos[i] = static_cast<float>(std::cos(angle) * static_cast<long double>(concentration));
    sin[i] = static_cast<float>(std::sin(angle) * static_cast<long double>(concentration));
  }
}

double YarnConcentration(double factor) { return factor > 1 ? 0.1 * std::log(factor) + 1 : 1.0; }

std::vector<double> RopeFrequencies(const RopeSpec& rope) {
  std::vector<double> frequencies(static_cast<size_t>(rope.n_dims / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(rope.theta, -2.0 * static_cast<double>(i) / rope.n_dims);
  }
  switch (rope.scaling) {
    case RopeScaling::kNone:
      break;
    case RopeScaling::kLinear:
      for (double& frequency : frequencies) frequency /= rope.factor;
      break;
    case RopeScaling::kYarn:
      ScaleYarn(rope, frequencies);
      break;
    case RopeScaling::kLlama3:
      ScaleLlama3(rope, frequencies);
      break;
    case RopeScaling::kDivisors:
      for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= rope.divisors[i];
      break;
  }
  return frequencies;
}

}  // namespace hearth
