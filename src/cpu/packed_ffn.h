// SPDX-License-Identifier: Apache-2.0
// The packed weights of one feed-forward part: a dense layer's, or an expert's.
#pragma once
#include "cpu/kernels.h"
namespace hearth {

struct PackedFfn {
  PackedMatrix gate, up, down;
  const float *gate_bias, *up_bias, *down_bias;  // padded to whole panels, or null
};

}  // namespace hearth
