// SPDX-License-Identifier: Apache-2.0
// Floats to block formats: the other direction of tensor/quant.h. Which bits come out is decided by
// the error that is left, so the search is slow and the same on every machine and thread count.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"
namespace hearth {

// Whether EncodeBlocks knows the format.
bool CanEncode(DType dtype);

// `count` values (a whole number of blocks) to `out`, dense. Values must be finite; for kF16 also
// below 65520, or they become infinite.
void EncodeBlocks(DType dtype, const float* values, int64_t count, std::byte* out);

}  // namespace hearth
