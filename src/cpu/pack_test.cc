// SPDX-License-Identifier: Apache-2.0
// Packing changes no weight: what comes back is what the decoder of the file format says.
#include "cpu/pack.h"

#include <gtest/gtest.h>

#include "tensor/quant.h"
#include "testing/kernels.h"

namespace hearth {
namespace {

using testing::Difference;
using testing::Rng;
using testing::TestMatrix;

void ExpectUnpacks(const TestMatrix& matrix) {
  std::vector<float> want(static_cast<size_t>(matrix.view.cols)), got(want.size());
  for (int row = 0; row < matrix.view.rows; ++row) {
    DecodeRow(matrix.view, row, want.data());
    UnpackRow(matrix.packed, row, got.data());
    // An E2M1 code of minus zero decodes to -0.0 and packs as the integer 0: equal as numbers,
    // and nothing ever multiplies it as a float.
    for (float& value : want) value += 0.0f;
    for (float& value : got) value += 0.0f;
    ASSERT_EQ(Difference(want, got), "")
        << NameOf(matrix.view.dtype) << " " << matrix.view.rows << "x" << matrix.view.cols
        << ", row " << row << ", " << matrix.packed.num_spills << " spills";
  }
}

TEST(Pack, KeepsEveryWeight) {
  Rng rng(1);
  for (const DType dtype : {DType::kMxfp4, DType::kMxfp4Planes, DType::kQ8_0}) {
    for (const int cols : {32, 64, 96, 288, 544, 576, 608, 1152, 2880, 4096}) {
      for (const int rows : {1, 15, 16, 17, 50}) ExpectUnpacks(TestMatrix(dtype, rows, cols, rng));
    }
  }
}

TEST(Pack, KeepsRowsThatAreNotInPanels) {
  Rng rng(2);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16}) {
    for (const int cols : {1, 31, 64, 100}) ExpectUnpacks(TestMatrix(dtype, 19, cols, rng));
  }
  for (const DType dtype : {DType::kQ4_1, DType::kQ5_0, DType::kQ4_0}) {
    ExpectUnpacks(TestMatrix(dtype, 19, 96, rng));
  }
}

TEST(Pack, SpillsOnlyWhatCannotBeFolded) {
  Rng rng(3);
  const TestMatrix matrix(DType::kMxfp4, 48, 2880, rng);
  ASSERT_GT(matrix.packed.num_spills, 0) << "the data no longer reaches the spills";
  EXPECT_LT(matrix.packed.num_spills, 48 * 90);
  for (int s = 0; s < matrix.packed.num_spills; ++s) {
    const SpilledBlock& spill = matrix.packed.spills[s];
    EXPECT_NE(spill.row % 3, 0) << "rows of mode 0 span four exponents and must fold";
    if (s == 0) continue;
    const SpilledBlock& before = matrix.packed.spills[s - 1];
    EXPECT_TRUE(before.row < spill.row || (before.row == spill.row && before.block < spill.block))
        << "spills must ascend";
  }
}

TEST(Pack, PanelsStartOnLinesAndPadWithZeros) {
  Rng rng(4);
  for (const DType dtype : {DType::kMxfp4, DType::kQ8_0}) {
    const TestMatrix matrix(dtype, 21, 608, rng);
    EXPECT_EQ(matrix.packed.panel_bytes % 64, 0);
    std::vector<float> row(608);
    for (int r = 21; r < 32; ++r) {
      UnpackRow(matrix.packed, r, row.data());
      for (const float value : row) ASSERT_EQ(value, 0.0f) << NameOf(dtype) << " row " << r;
    }
  }
}

}  // namespace
}  // namespace hearth
