// SPDX-License-Identifier: Apache-2.0
// Weight formats that a program adds to the built-in ones of tensor.h, before it opens a model.
#pragma once
#include <cstdint>

#include "tensor/tensor.h"
namespace hearth {

struct BlockFormat {
  const char* name;
  BlockShape shape;
  void (*decode)(const uint8_t* block, float* out);  // to `shape.elems` values
};
inline constexpr int kMaxAddedFormats = 16;

// Returns the DType that stands for the format from now on, in this process. Everything that reads
// blocks then knows it; a backend decodes it row by row until it gets kernels for it
// (cpu/pack_format.h). `format` must outlive the process's use of it.
// Thread: one, before any other uses formats.
DType AddBlockFormat(const BlockFormat& format);
// Null for built-in formats.
const BlockFormat* AddedFormat(DType dtype);

}  // namespace hearth
