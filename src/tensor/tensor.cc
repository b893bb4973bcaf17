// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include "tensor/block_format.h"

namespace hearth {
namespace {

struct Format {
  DType dtype;
  const char* name;
  BlockShape shape;
};

// In the order of the enum, so that a lookup is an index.
constexpr Format kFormats[] = {
    {DType::kF32, "F32", {1, 4}},
    {DType::kF16, "F16", {1, 2}},
    {DType::kBf16, "BF16", {1, 2}},
    {DType::kF64, "F64", {1, 8}},
    {DType::kI8, "I8", {1, 1}},
    {DType::kU8, "U8", {1, 1}},
    {DType::kI16, "I16", {1, 2}},
    {DType::kU16, "U16", {1, 2}},
    {DType::kI32, "I32", {1, 4}},
    {DType::kU32, "U32", {1, 4}},
    {DType::kI64, "I64", {1, 8}},
    {DType::kU64, "U64", {1, 8}},
    {DType::kBool, "BOOL", {1, 1}},
    {DType::kF8E4m3, "F8_E4M3", {1, 1}},
    {DType::kF8E5m2, "F8_E5M2", {1, 1}},
    {DType::kQ4_0, "Q4_0", {32, 18}},
    {DType::kQ4_1, "Q4_1", {32, 20}},
    {DType::kQ5_0, "Q5_0", {32, 22}},
    {DType::kQ5_1, "Q5_1", {32, 24}},
    {DType::kQ8_0, "Q8_0", {32, 34}},
    {DType::kQ2_K, "Q2_K", {256, 84}},
    {DType::kQ3_K, "Q3_K", {256, 110}},
    {DType::kQ4_K, "Q4_K", {256, 144}},
    {DType::kQ5_K, "Q5_K", {256, 176}},
    {DType::kQ6_K, "Q6_K", {256, 210}},
    {DType::kIq4Nl, "IQ4_NL", {32, 18}},
    {DType::kIq4Xs, "IQ4_XS", {256, 136}},
    {DType::kIq2Xxs, "IQ2_XXS", {256, 66}},
    {DType::kMxfp4, "MXFP4", {32, 17}},
    {DType::kMxfp4Planes, "MXFP4_PLANES", {32, 16}},
};

constexpr bool InEnumOrder() {
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    if (static_cast<size_t>(kFormats[i].dtype) != i) return false;
  }
  return true;
}
static_assert(InEnumOrder());

Format FormatOf(DType dtype) {
  if (static_cast<size_t>(dtype) < std::size(kFormats)) return kFormats[static_cast<size_t>(dtype)];
  const BlockFormat* added = AddedFormat(dtype);
  HEARTH_CHECK(added != nullptr);
  return {dtype, added->name, added->shape};
}

}  // namespace

BlockShape BlockShapeOf(DType dtype) { return FormatOf(dtype).shape; }
const char* NameOf(DType dtype) { return FormatOf(dtype).name; }

std::string ShapeText(const TensorView& tensor) {
  std::string text = "[";
  for (int i = 0; i < tensor.rank; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(tensor.shape[static_cast<size_t>(i)]);
  }
  return text + "]";
}

MatView MatView::Rows(int first, int count) const {
  HEARTH_CHECK(first >= 0 && count >= 0 && first + count <= rows);
  MatView part = *this;
  part.data += first * row_bytes;
  if (scales != nullptr) part.scales += first * scale_row_bytes;
  part.rows = count;
  return part;
}

MatView MatView::EverySecondRow(int first) const {
  HEARTH_CHECK((first == 0 || first == 1) && rows % 2 == 0);
  MatView part = Rows(first, rows - first);
  part.rows = rows / 2;
  part.row_bytes *= 2;
  part.scale_row_bytes *= 2;
  return part;
}

std::span<const std::byte> ExtentOf(const MatView& matrix) {
  const BlockShape shape = BlockShapeOf(matrix.dtype);
  const int64_t last_block = matrix.cols / shape.elems - 1;
  const int64_t step = shape.elems == 1 ? matrix.col_bytes : shape.bytes;
  const int64_t last = (matrix.rows - 1) * matrix.row_bytes + last_block * step;
  return {matrix.data, static_cast<size_t>(last + shape.bytes)};
}

int64_t BytesOf(const MatView& matrix) {
  const BlockShape shape = BlockShapeOf(matrix.dtype);
  const int64_t blocks = int64_t{matrix.rows} * (matrix.cols / shape.elems);
  return blocks * (shape.bytes + (matrix.scales != nullptr ? 1 : 0));
}

}  // namespace hearth
