// SPDX-License-Identifier: Apache-2.0
// Which format is decoded by which function, and how a row of a matrix is walked.
#include "tensor/quant.h"

#include <cstring>

#include "tensor/block_decoders.h"
#include "tensor/block_format.h"

namespace hearth {
namespace {

using Decoder = void (*)(const uint8_t* block, float* out);

// Formats of single values, too: a block of one.
void DecodeF32(const uint8_t* block, float* out) { std::memcpy(out, block, sizeof(float)); }
void DecodeF16(const uint8_t* block, float* out) { *out = LoadF16(block); }
void DecodeBf16(const uint8_t* block, float* out) { *out = F32FromBf16(LoadU16(block)); }

Decoder DecoderOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return DecodeF32;
    case DType::kF16:
      return DecodeF16;
    case DType::kBf16:
      return DecodeBf16;
    case DType::kQ4_0:
      return DecodeQ4_0;
    case DType::kQ4_1:
      return DecodeQ4_1;
    case DType::kQ5_0:
      return DecodeQ5_0;
    case DType::kQ5_1:
      return DecodeQ5_1;
    case DType::kQ8_0:
      return DecodeQ8_0;
    case DType::kQ2_K:
      return DecodeQ2K;
    case DType::kQ3_K:
      return DecodeQ3K;
    case DType::kQ4_K:
      return DecodeQ4K;
    case DType::kQ5_K:
      return DecodeQ5K;
    case DType::kQ6_K:
      return DecodeQ6K;
    case DType::kIq4Nl:
      return DecodeIq4Nl;
    case DType::kIq4Xs:
      return DecodeIq4Xs;
    case DType::kIq2Xxs:
      return DecodeIq2Xxs;
    case DType::kMxfp4:
      return DecodeMxfp4;
    default: {
      const BlockFormat* added = AddedFormat(dtype);
      return added != nullptr ? added->decode : nullptr;
    }
  }
}

void DecodePlanesRow(const MatView& matrix, int row, float* out) {
  HEARTH_CHECK(matrix.scales != nullptr && matrix.cols % 32 == 0);
  const auto* nibbles = reinterpret_cast<const uint8_t*>(matrix.data + row * matrix.row_bytes);
  const auto* scales =
      reinterpret_cast<const uint8_t*>(matrix.scales + row * matrix.scale_row_bytes);
  for (int block = 0; block < matrix.cols / 32; ++block) {
    DecodeMxfp4Plane(nibbles + block * 16, scales[block], out + block * 32);
  }
}

}  // namespace

bool CanDecode(DType dtype) { return dtype == DType::kMxfp4Planes || DecoderOf(dtype) != nullptr; }

void DecodeBlocks(DType dtype, const std::byte* data, int64_t count, float* out) {
  const Decoder decode = DecoderOf(dtype);
  HEARTH_CHECK(decode != nullptr);
  const BlockShape shape = BlockShapeOf(dtype);
  HEARTH_CHECK(count >= 0 && count % shape.elems == 0);
  const auto* block = reinterpret_cast<const uint8_t*>(data);
  for (int64_t i = 0; i < count; i += shape.elems, block += shape.bytes) decode(block, out + i);
}

void DecodeRow(const MatView& matrix, int row, float* out) {
  HEARTH_CHECK(row >= 0 && row < matrix.rows);
  if (matrix.dtype == DType::kMxfp4Planes) return DecodePlanesRow(matrix, row, out);
  const std::byte* data = matrix.data + row * matrix.row_bytes;
  const BlockShape shape = BlockShapeOf(matrix.dtype);
  if (shape.elems > 1 || matrix.col_bytes == shape.bytes) {
    return DecodeBlocks(matrix.dtype, data, matrix.cols, out);
  }
  HEARTH_CHECK(matrix.col_bytes != 0 || matrix.cols <= 1);
  for (int col = 0; col < matrix.cols; ++col) {
    DecodeBlocks(matrix.dtype, data + col * matrix.col_bytes, 1, out + col);
  }
}

}  // namespace hearth
