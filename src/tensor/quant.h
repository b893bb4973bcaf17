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
// (One exception: an MXFP4 scale of 255 gives NaN, as the standard says, where gguf computes on.)
// Not for kMxfp4Planes, whose scales lie elsewhere.
void DecodeBlocks(DType dtype, const std::byte* data, int64_t count, float* out);

// Row `row` of a matrix, `matrix.cols` values.
void DecodeRow(const MatView& matrix, int row, float* out);

// Refuses, by block number, weights that are no numbers: an MXFP4 scale of 255 (NaN), an f16 factor
// or a value that is NaN or infinite. Walks all bytes once, so call it at load and only then.
// Formats that CanDecode does not know pass. Not for kMxfp4Planes.
Status CheckBlocks(DType dtype, std::span<const std::byte> bytes);

// The same for kMxfp4Planes: 16 bytes of nibbles per scale byte, both planes dense.
Status CheckPlanes(std::span<const std::byte> nibbles, std::span<const std::byte> scales);

}  // namespace hearth
