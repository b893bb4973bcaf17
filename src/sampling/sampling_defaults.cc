// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampling_defaults.h"

#include <cmath>
#include <limits>

namespace hearth {
namespace {

constexpr float kOpen = std::numeric_limits<float>::quiet_NaN();

void Fill(const std::optional<double>& recommended, float& value, float otherwise) {
  if (!std::isnan(value)) return;
  value = recommended ? static_cast<float>(*recommended) : otherwise;
}

}  // namespace

SamplingParams OpenSampling() {
  SamplingParams params;
  params.temperature = params.top_p = params.min_p = params.repetition_penalty = kOpen;
  params.top_k = -1;
  return params;
}

void FillOpen(const SamplingDefaults& defaults, SamplingParams& params) {
  const SamplingParams plain;
  Fill(defaults.temperature, params.temperature, plain.temperature);
  Fill(defaults.top_p, params.top_p, plain.top_p);
  Fill(defaults.min_p, params.min_p, plain.min_p);
  Fill(defaults.repetition_penalty, params.repetition_penalty, plain.repetition_penalty);
  if (params.top_k < 0) params.top_k = defaults.top_k.value_or(plain.top_k);
}

}  // namespace hearth
