// SPDX-License-Identifier: Apache-2.0
// How numbers lie in memory. No arithmetic lives here: decoding is quant.h.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
namespace hearth {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kF64,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool,
  kF8E4m3,
  kF8E5m2,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIq4Nl,
  kIq4Xs,
  kIq2Xxs,
  kMxfp4,        // GGUF's: 17-byte blocks, exponent first
  kMxfp4Planes,  // Hugging Face's and OpenAI's: nibbles and exponents in two tensors
};

// `elems` neighbours in a row share `bytes` bytes.
struct BlockShape {
  int elems, bytes;
};
BlockShape BlockShapeOf(DType dtype);
const char* NameOf(DType dtype);

// A borrowed look at one tensor as its file stores it: dense, row-major, outermost dimension
// first. Copy it freely; it never owns.
struct TensorView {
  static constexpr int kMaxRank = 4;
  std::span<const std::byte> bytes;
  DType dtype = DType::kF32;
  int rank = 0;
  std::array<int64_t, kMaxRank> shape{};  // [0, rank) are used, outermost first
};
std::string ShapeText(const TensorView& tensor);  // "[201088, 2880]"

// A borrowed look at a matrix inside a tensor, wherever and however it lies: a slice of rows, every
// second row of interleaved gate and up, one expert of a stack, a transposed one. `rows` are
// outputs, `cols` inputs; a vector is a matrix of one row.
struct MatView {
  const std::byte* data = nullptr;
  const std::byte* scales = nullptr;  // kMxfp4Planes only: one E8M0 byte per 32 columns
  DType dtype = DType::kF32;
  int rows = 0, cols = 0;
  int64_t row_bytes = 0;        // from one row to the next
  int64_t col_bytes = 0;        // from one column to the next; unblocked types only
  int64_t scale_row_bytes = 0;  // kMxfp4Planes only

  bool present() const { return data != nullptr; }
  MatView Rows(int first, int count) const;  // rows [first, first + count)
  MatView EverySecondRow(int first) const;   // rows first, first + 2, ...
};

// From the first byte of the matrix to its last, with whatever lies between; not its scales.
std::span<const std::byte> ExtentOf(const MatView& matrix);
// Bytes that reading the whole matrix once touches.
int64_t BytesOf(const MatView& matrix);

}  // namespace hearth
