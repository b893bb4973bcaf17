// SPDX-License-Identifier: Apache-2.0
// Block arithmetic and views: what a slice of a matrix points at, and what it costs to read.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hearth {
namespace {

constexpr int kLastDType = static_cast<int>(DType::kMxfp4Planes);

TEST(Tensor, NamesAreDistinct) {
  std::set<std::string> names;
  for (int i = 0; i <= kLastDType; ++i) names.insert(NameOf(static_cast<DType>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kLastDType + 1));
}

TEST(Tensor, BlockShapesAddUp) {
  // Bits per value of the blocked formats, from what their blocks hold.
  const auto bits = [](DType dtype) {
    const BlockShape shape = BlockShapeOf(dtype);
    return 8.0 * shape.bytes / shape.elems;
  };
  EXPECT_EQ(bits(DType::kQ4_0), 4.5);
  EXPECT_EQ(bits(DType::kQ4_1), 5.0);
  EXPECT_EQ(bits(DType::kQ5_0), 5.5);
  EXPECT_EQ(bits(DType::kQ5_1), 6.0);
  EXPECT_EQ(bits(DType::kQ8_0), 8.5);
  EXPECT_EQ(bits(DType::kQ2_K), 2.625);
  EXPECT_EQ(bits(DType::kQ3_K), 3.4375);
  EXPECT_EQ(bits(DType::kQ4_K), 4.5);
  EXPECT_EQ(bits(DType::kQ5_K), 5.5);
  EXPECT_EQ(bits(DType::kQ6_K), 6.5625);
  EXPECT_EQ(bits(DType::kIq4Nl), 4.5);
  EXPECT_EQ(bits(DType::kIq4Xs), 4.25);
  EXPECT_EQ(bits(DType::kIq2Xxs), 2.0625);
  EXPECT_EQ(bits(DType::kMxfp4), 4.25);
  EXPECT_EQ(bits(DType::kMxfp4Planes), 4.0);
}

TEST(Tensor, ShapeTextListsUsedDimensions) {
  TensorView tensor;
  tensor.rank = 2;
  tensor.shape = {201088, 2880, 7, 7};
  EXPECT_EQ(ShapeText(tensor), "[201088, 2880]");
  tensor.rank = 0;
  EXPECT_EQ(ShapeText(tensor), "[]");
}

class Planes : public ::testing::Test {
 protected:
  const std::byte data_[6 * 32] = {}, scales_[6 * 2] = {};
  const MatView matrix_ = {.data = data_,
                           .scales = scales_,
                           .dtype = DType::kMxfp4Planes,
                           .rows = 6,
                           .cols = 64,
                           .row_bytes = 32,
                           .scale_row_bytes = 2};
};

TEST_F(Planes, RowsMoveBothPlanes) {
  const MatView part = matrix_.Rows(4, 2);
  EXPECT_EQ(part.data, data_ + 4 * 32);
  EXPECT_EQ(part.scales, scales_ + 4 * 2);
  EXPECT_EQ(part.rows, 2);
  EXPECT_EQ(part.row_bytes, 32);
  EXPECT_EQ(BytesOf(part), 2 * (32 + 2));
}

TEST_F(Planes, EverySecondRowStridesOverTheOther) {
  const MatView odd = matrix_.EverySecondRow(1);
  EXPECT_EQ(odd.data, data_ + 32);
  EXPECT_EQ(odd.scales, scales_ + 2);
  EXPECT_EQ(odd.rows, 3);
  EXPECT_EQ(odd.row_bytes, 64);
  EXPECT_EQ(odd.scale_row_bytes, 4);
}

TEST_F(Planes, ExtentsReachFromTheFirstByteToTheLast) {
  EXPECT_EQ(ExtentOf(matrix_).data(), data_);
  EXPECT_EQ(ExtentOf(matrix_).size(), 6u * 32);
  EXPECT_EQ(ExtentOf(matrix_.EverySecondRow(1)).data(), data_ + 32);
  EXPECT_EQ(ExtentOf(matrix_.EverySecondRow(1)).size(), 5u * 32);
  // Three columns of 16 values, read as rows.
  const MatView turned = {
      .data = data_, .dtype = DType::kF16, .rows = 16, .cols = 3, .row_bytes = 2, .col_bytes = 32};
  EXPECT_EQ(ExtentOf(turned).size(), 3u * 32);
}

TEST_F(Planes, SlicesOutsideAreBugs) {
  EXPECT_DEATH(matrix_.Rows(5, 2), "rows");
  EXPECT_DEATH(matrix_.Rows(-1, 2), "first");
  EXPECT_DEATH(matrix_.EverySecondRow(2), "first");
  EXPECT_DEATH(matrix_.Rows(0, 5).EverySecondRow(0), "rows");
}

TEST(Tensor, BytesOfCountsWhatARowReads) {
  const std::byte data[1] = {};
  const MatView f16 = {.data = data, .dtype = DType::kF16, .rows = 3, .cols = 5};
  EXPECT_EQ(BytesOf(f16), 30);
  const MatView q8 = {.data = data, .dtype = DType::kQ8_0, .rows = 201088, .cols = 2880};
  EXPECT_EQ(BytesOf(q8), int64_t{201088} * 90 * 34);
  EXPECT_FALSE(MatView{}.present());
  EXPECT_TRUE(q8.present());
}

}  // namespace
}  // namespace hearth
