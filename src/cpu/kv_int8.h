// SPDX-License-Identifier: Apache-2.0
// Where the bytes of an int8 KV head lie in its block, and what they are multiplied by. Four
// neighbours, dimensions of a key or positions of a dimension of V, are one lane of a dot product
// of bytes; one line of 64 bytes is such a lane of 16 keys, or of 16 dimensions. Internal linkage:
// kernel files compiled for newer processors must not share copies.
#pragma once
#include "cpu/kernels.h"
namespace hearth {

// K, [d_head / 4][16 keys][4 dimensions]: codes plus 128, so that they are unsigned.
static constexpr int kInt8KeyZero = 128;
static constexpr int Int8KeyAt(int dim, int lane) {
  return (dim / 4 * kBlockTokens + lane) * 4 + dim % 4;
}
// V, [16 / 4][dims][4 positions] with dims of KvDims: signed codes.
static constexpr int Int8ValueAt(int dims, int dim, int lane) {
  return (lane / 4 * dims + dim) * 4 + lane % 4;
}
// What the largest weight of a span becomes: 256 of them times 128 are below 2^31.
static constexpr float kInt8WeightMax = 32767.0f;

}  // namespace hearth
