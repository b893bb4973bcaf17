// SPDX-License-Identifier: Apache-2.0
// Logits -> one token. Pure: the same logits, parameters and step give the same token.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "engine/sampling_params.h"
namespace hearth {

// `step` counts generated tokens and, with the seed, is the whole random state: a request that is
// run again draws the same numbers. Ties go to the lower token; NaN logits are never chosen unless
// there is nothing else, in which case the answer is -1.
Token Sample(std::span<const float> logits, const SamplingParams& params, uint64_t step);

// The draw behind Sample: uniform in [0, 1), from (seed, step) alone.
double UniformDraw(uint64_t seed, uint64_t step);

}  // namespace hearth
