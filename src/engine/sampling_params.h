// SPDX-License-Identifier: Apache-2.0
// How a request wants its tokens chosen. Plain data; docs/sampling.md says what each field does and
// in which order.
#pragma once
#include <cstdint>

#include "base/ids.h"
#include "base/result.h"
namespace hearth {

struct SamplingParams {
  float temperature = 1.0f;  // 0 = the most likely token
  int top_k = 0;             // keep this many of the most likely tokens; 0 = all
  float top_p = 1.0f;        // keep the most likely tokens up to this share; 1 = all
  float min_p = 0.0f;        // keep tokens with at least this share of the likeliest one's
  uint64_t seed = 0;
};

// kInvalid with the field, its value and its range if a field makes no sense.
Status Validate(const SamplingParams& params);

}  // namespace hearth
