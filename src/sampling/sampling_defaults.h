// SPDX-License-Identifier: Apache-2.0
// What a model's publisher recommends for the settings that a request leaves open. A request's own
// value always wins; where the file says nothing either, the setting changes nothing.
#pragma once
#include <optional>
#include <string>

#include "sampling/sampling_params.h"
namespace hearth {

struct SamplingDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;  // as the file writes them
  std::optional<int> top_k;
  std::string source{};  // where they were read: "generation_config.json"; empty: nowhere
};

// Settings of which those five are open: NaN, and -1 for top_k. Validate refuses what is still
// open, so that a forgotten FillOpen cannot sample with a guess.
SamplingParams OpenSampling();

// Gives every setting that is still open its value. The others stay.
void FillOpen(const SamplingDefaults& defaults, SamplingParams& params);

}  // namespace hearth
