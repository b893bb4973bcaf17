// SPDX-License-Identifier: Apache-2.0
// Every block format to float, slow and exact: the oracle of all kernels, and the reference's eyes.
#pragma once
#include <span>

#include "tensor/tensor.h"
namespace hearth {

// Whether DecodeBlocks knows the format. Integer tensors, for instance, are not weights.
bool CanDecode(DType dtype);

// Decodes `count` values (a whole number of blocks) that lie densely at `data`. The float each
// value gets is bit-equal to what PyPI `gguf` computes: operations in the same order, in float32.
// Not for kMxfp4Planes, whose scales lie elsewhere.
void DecodeBlocks(DType dtype, const std::byte* data, int64_t count, float* out);

// Row `row` of a matrix, `matrix.cols` values.
void DecodeRow(const MatView& matrix, int row, float* out);

// What a format forbids inside a block (an MXFP4 scale of 255, which is NaN). Walks all of it.
Status CheckBlocks(DType dtype, std::span<const std::byte> bytes);

}  // namespace hearth
