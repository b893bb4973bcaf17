// SPDX-License-Identifier: Apache-2.0
// Formats without a kernel: rows as the file has them, decoded to float when they are used.
#include <cstring>

#include "cpu/pack_format.h"
#include "cpu/panels.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

int64_t RowBytes(DType dtype, int cols) {
  const BlockShape block = BlockShapeOf(dtype);
  return int64_t{cols} / block.elems * block.bytes;
}

void CopyRow(const MatView& matrix, int row, uint8_t* dst) {
  const BlockShape block = BlockShapeOf(matrix.dtype);
  const std::byte* src = matrix.data + row * matrix.row_bytes;
  if (block.elems > 1 || matrix.col_bytes == block.bytes) {
    std::memcpy(dst, src, static_cast<size_t>(RowBytes(matrix.dtype, matrix.cols)));
    return;
  }
  for (int i = 0; i < matrix.cols; ++i) {
    std::memcpy(dst + i * block.bytes, src + i * matrix.col_bytes,
                static_cast<size_t>(block.bytes));
  }
}

bool PackPanel(const MatView& matrix, int first_row, int count, uint8_t* panel,
               std::vector<SpilledBlock>&) {
  const int64_t row_bytes = LineUp(RowBytes(matrix.dtype, matrix.cols));
  std::memset(panel, 0, static_cast<size_t>(row_bytes * kPanelRows));
  bool plausible = true;
  for (int i = 0; i < count; ++i) {
    uint8_t* row = panel + i * row_bytes;
    CopyRow(matrix, first_row + i, row);
    const auto bytes = static_cast<size_t>(RowBytes(matrix.dtype, matrix.cols));
    plausible &= CheckBlocks(matrix.dtype, std::as_bytes(std::span(row, bytes))).ok();
  }
  return plausible;
}

bool CheckPanel(const PackedMatrix& packed, const uint8_t* panel) {
  const auto dtype = static_cast<DType>(packed.dtype);
  const auto bytes = static_cast<size_t>(RowBytes(dtype, packed.cols));
  bool sound = true;
  for (int i = 0; i < kPanelRows; ++i) {
    const uint8_t* row = panel + i * (packed.panel_bytes / kPanelRows);
    sound &= CheckBlocks(dtype, std::as_bytes(std::span(row, bytes))).ok();
  }
  return sound;
}

void Unpack(const PackedMatrix& packed, int row, float* out) {
  const uint8_t* data = packed.data + row * (packed.panel_bytes / kPanelRows);
  DecodeBlocks(static_cast<DType>(packed.dtype), reinterpret_cast<const std::byte*>(data),
               packed.cols, out);
}

}  // namespace

const PackFormat kRawFormat = {
    .name = "raw",
    .unit = 1,
    .strip = 0,
    .panel_bytes = [](DType dtype, int cols) { return kPanelRows * LineUp(RowBytes(dtype, cols)); },
    .pack = PackPanel,
    .check = CheckPanel,
    .unpack_row = Unpack,
};

}  // namespace hearth
