// SPDX-License-Identifier: Apache-2.0
// Randomness without a generator: a draw is a function of where it happens, so a sequence that is
// replayed, preempted or batched differently draws the same numbers.
#pragma once
#include <cstdint>
namespace hearth {

// What a draw is for. Draws of different streams are independent of each other.
enum class DrawStream : uint32_t { kToken = 0, kXtc = 1 };

struct DrawPlace {
  uint64_t seed = 0;    // of the request
  uint32_t choice = 0;  // which of the request's `n` replies
  uint64_t step = 0;    // tokens generated so far
  DrawStream stream = DrawStream::kToken;
};

// Uniform in [0, 1), a multiple of 2^-53.
double UniformDraw(const DrawPlace& place);

}  // namespace hearth
