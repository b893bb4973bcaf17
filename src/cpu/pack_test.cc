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
  for (const DType dtype :
       {DType::kMxfp4, DType::kMxfp4Planes, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
        DType::kQ5_1, DType::kIq4Nl, DType::kF32, DType::kF16, DType::kBf16}) {
    for (const int cols : {32, 64, 96, 288, 544, 576, 608, 1152, 2880, 4096}) {
      for (const int rows : {1, 15, 16, 17, 50}) ExpectUnpacks(TestMatrix(dtype, rows, cols, rng));
    }
  }
}

TEST(Pack, KeepsEveryWeightOfSuperblocks) {
  Rng rng(7);
  for (const DType dtype :
       {DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIq4Xs}) {
    for (const int cols : {256, 512, 1536}) {
      for (const int rows : {1, 16, 17, 50}) {
        const TestMatrix matrix(dtype, rows, cols, rng);
        ASSERT_NE(matrix.packed.kind, PackKind::kRaw) << NameOf(dtype);
        ExpectUnpacks(matrix);
      }
    }
  }
}

TEST(Pack, KeepsRowsThatAreNotInPanels) {
  Rng rng(2);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16}) {
    for (const int cols : {1, 31, 80, 100}) ExpectUnpacks(TestMatrix(dtype, 19, cols, rng));
  }
  for (const DType dtype : {DType::kIq2Xxs}) ExpectUnpacks(TestMatrix(dtype, 19, 512, rng));
}

// Columns that are not neighbours: a matrix whose file has it transposed.
TEST(Pack, KeepsTransposedFloats) {
  Rng rng(7);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16}) {
    const TestMatrix matrix(dtype, 96, 37, rng);
    MatView view = matrix.view;
    std::swap(view.rows, view.cols);
    std::swap(view.row_bytes, view.col_bytes);
    testing::Lines lines(static_cast<size_t>(PackedBytes(view)));
    std::memset(lines.data(), 0xa5, static_cast<size_t>(PackedBytes(view)));
    std::vector<SpilledBlock> spills;
    PackPanels(view, 0, NumPanels(view.rows), lines.data(), spills);
    const PackedMatrix packed{PackKindOf(view), static_cast<uint8_t>(dtype), view.rows, view.cols,
                              lines.data(),     PanelBytesOf(view),          nullptr,   0};
    ASSERT_NE(packed.kind, PackKind::kRaw);
    std::vector<float> want(96), got(96);
    for (int row = 0; row < NumPanels(view.rows) * kPanelRows; ++row) {
      std::fill(want.begin(), want.end(), 0.0f);  // rows that are not there
      if (row < view.rows) DecodeRow(view, row, want.data());
      UnpackRow(packed, row, got.data());
      ASSERT_EQ(Difference(want, got), "") << NameOf(dtype) << " row " << row;
    }
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

// Everything that packing leaves behind, from memory that held something else before.
struct Packed {
  std::vector<uint8_t> bytes;
  std::vector<SpilledBlock> spills;
};
template <class Pack>
Packed PackedWith(Pack pack, const MatView& view) {
  const auto size = static_cast<size_t>(PackedBytes(view));
  testing::Lines lines(size);
  std::memset(lines.data(), 0xa5, size);
  Packed packed;
  const int panels = NumPanels(view.rows);
  const int middle = panels / 2;  // two calls, as two threads would
  pack(view, 0, middle, lines.data(), packed.spills);
  pack(view, middle, panels, lines.data(), packed.spills);
  packed.bytes.assign(lines.data(), lines.data() + size);
  return packed;
}

void Plainly(const MatView& view, int panel_begin, int panel_end, uint8_t* dst,
             std::vector<SpilledBlock>& spills) {
  for (int p = panel_begin; p < panel_end; ++p) {
    const int first = p * kPanelRows;
    PackPanelPlainly(view, first, std::min(kPanelRows, view.rows - first),
                     dst + p * PanelBytesOf(view), spills);
  }
}

void ExpectSameAsPlain(const MatView& view, int& num_spills) {
  const Packed fast = PackedWith(PackPanels, view), plain = PackedWith(Plainly, view);
  const auto differs = std::mismatch(plain.bytes.begin(), plain.bytes.end(), fast.bytes.begin());
  ASSERT_EQ(differs.first, plain.bytes.end())
      << NameOf(view.dtype) << " " << view.rows << "x" << view.cols << ": byte "
      << differs.first - plain.bytes.begin() << " of " << plain.bytes.size();
  ASSERT_EQ(fast.spills.size(), plain.spills.size());
  for (size_t i = 0; i < plain.spills.size(); ++i) {
    ASSERT_EQ(std::memcmp(&fast.spills[i], &plain.spills[i], sizeof(SpilledBlock)), 0)
        << NameOf(view.dtype) << " " << view.rows << "x" << view.cols << ": spill " << i;
  }
  num_spills += static_cast<int>(plain.spills.size());
}

TEST(Pack, IsTheSameAsThePlainWay) {
  Rng rng(5);
  int num_spills = 0;
  for (const DType dtype : {DType::kMxfp4, DType::kMxfp4Planes, DType::kQ8_0}) {
    for (const int cols : {32, 64, 96, 128, 544, 576, 608, 1152, 1184, 2880, 4096}) {
      for (const int rows : {1, 15, 16, 17, 32, 47, 50, 80}) {
        const TestMatrix matrix(dtype, rows, cols, rng);
        ExpectSameAsPlain(matrix.view, num_spills);
        if (rows < 2) continue;
        if (rows % 2 == 0) ExpectSameAsPlain(matrix.view.EverySecondRow(1), num_spills);
        ExpectSameAsPlain(matrix.view.Rows(1, rows - 1), num_spills);
      }
    }
  }
  EXPECT_GT(num_spills, 1000) << "the data no longer reaches the spills";
}

// What packing leaves depends on the weights alone, and a panel that is not full equals a full one
// in the rows it has.
TEST(Pack, BlocksFillEveryByteOfTheirPanels) {
  Rng rng(7);
  for (const DType dtype :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kIq4Nl}) {
    for (const int cols : {32, 64, 576, 608}) {
      const TestMatrix matrix(dtype, 40, cols, rng);
      const Packed packed = PackedWith(PackPanels, matrix.view);
      ASSERT_EQ(std::memcmp(packed.bytes.data(), matrix.packed.data, packed.bytes.size()), 0)
          << NameOf(dtype) << " " << cols;
      EXPECT_EQ(PanelBytesOf(matrix.view),
                16 * BlockShapeOf(dtype).bytes * ((cols + 63) / 64 * 64) / kQuantBlock)
          << "as wide as the file";
    }
  }
}

// One scale made what no sound file has, anywhere: in the first row, and in the last of a panel
// that is not full.
TEST(Pack, DoubtsScalesThatMayBeNoNumbers) {
  for (const DType dtype :
       {DType::kMxfp4, DType::kMxfp4Planes, DType::kQ8_0, DType::kF32, DType::kF16, DType::kBf16}) {
    for (const int row : {0, 15, 16, 36}) {
      const int cols = 1152, rows = 37;
      const BlockShape shape = BlockShapeOf(dtype);
      std::vector<uint8_t> file(static_cast<size_t>(rows * cols * 4)), scales(rows * 36, 120);
      MatView view;
      view.dtype = dtype;
      view.rows = rows;
      view.cols = cols;
      view.row_bytes = cols / shape.elems * shape.bytes;
      view.col_bytes = shape.elems == 1 ? shape.bytes : 0;
      view.scale_row_bytes = 36;
      view.data = reinterpret_cast<const std::byte*>(file.data());
      view.scales = reinterpret_cast<const std::byte*>(scales.data());
      testing::Lines lines(static_cast<size_t>(PackedBytes(view)));
      std::vector<SpilledBlock> spills;
      EXPECT_TRUE(PackPanels(view, 0, NumPanels(rows), lines.data(), spills)) << NameOf(dtype);
      const auto at = static_cast<size_t>(row * view.row_bytes);
      if (dtype == DType::kMxfp4) file[at + 35 * 17] = 255;
      if (dtype == DType::kMxfp4Planes) scales[static_cast<size_t>(row) * 36 + 35] = 253;
      if (dtype == DType::kQ8_0) file[at + 35 * 34 + 1] = 0x7c;
      if (dtype == DType::kF16) file[at + 71] = 0xfc;
      if (dtype == DType::kF32 || dtype == DType::kBf16) {
        file[at + 70] = 0x80;
        file[at + 71] = 0xff;
      }
      EXPECT_FALSE(PackPanels(view, 0, NumPanels(rows), lines.data(), spills))
          << NameOf(dtype) << " row " << row;
    }
  }
}

TEST(Pack, DoubtsFactorsAndMinimaOfBlocks) {
  Rng rng(8);
  for (const DType dtype :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kIq4Nl}) {
    TestMatrix matrix(dtype, 37, 1184, rng);
    testing::Lines lines(static_cast<size_t>(PackedBytes(matrix.view)));
    std::vector<SpilledBlock> spills;
    const auto packs = [&] { return PackPanels(matrix.view, 0, 3, lines.data(), spills); };
    const auto checks = [&] {
      PackedMatrix packed = matrix.packed;
      packed.data = lines.data();
      return CheckPanels(packed, 0, 3);
    };
    EXPECT_TRUE(packs() && checks()) << NameOf(dtype);
    for (const int row : {0, 15, 16, 36}) {
      for (const int block : {0, 35, 36}) {
        for (const size_t factor : testing::FactorsOf(dtype)) {
          uint8_t& place = *matrix.FileByte(row, block, static_cast<int>(factor) + 1);
          const uint8_t before = std::exchange(place, rng.OneIn(2) ? 0x7c : 0xff);
          EXPECT_FALSE(packs()) << NameOf(dtype) << " row " << row << " block " << block;
          EXPECT_FALSE(checks()) << NameOf(dtype) << " row " << row << " block " << block;
          place = before;
        }
      }
    }
    EXPECT_TRUE(packs() && checks()) << NameOf(dtype);
  }
}

TEST(Pack, ForeignPanelsAreChecked) {
  Rng rng(6);
  for (const DType dtype :
       {DType::kMxfp4, DType::kQ8_0, DType::kF32, DType::kF16, DType::kBf16, DType::kQ4_0}) {
    const int cols = 1152, rows = 40;
    MatView view;
    view.dtype = dtype;
    view.rows = rows;
    view.cols = cols;
    const PackKind kind = PackKindOf(view);
    testing::Lines lines(static_cast<size_t>(PackedBytes(view)));
    if (kind == PackKind::kMxfp4) std::memset(lines.data(), 1, size_t{3} * kPanelRows);
    for (int p = 0; kind == PackKind::kMxfp4 && p < NumPanels(rows); ++p) {
      std::memset(lines.data() + p * PanelBytesOf(view), 120, size_t{2} * kPanelRows);
    }
    const PackedMatrix packed{kind,         static_cast<uint8_t>(dtype), rows,    cols,
                              lines.data(), PanelBytesOf(view),          nullptr, 0};
    EXPECT_TRUE(CheckPanels(packed, 0, NumPanels(rows))) << NameOf(dtype);
    const auto refuses = [&](int64_t at, uint8_t byte) {
      uint8_t& place = lines.data()[at];
      const uint8_t before = std::exchange(place, byte);
      EXPECT_FALSE(CheckPanels(packed, 0, NumPanels(rows))) << NameOf(dtype) << " " << at;
      place = before;
    };
    const int64_t last = 2 * PanelBytesOf(view);
    if (dtype == DType::kMxfp4) {
      refuses(0, 0);
      refuses(last + 2 * kPanelRows - 1, 253);
      refuses(Mxfp4ShiftsAt(cols), 0x40);
      refuses(last + Mxfp4ShiftsAt(cols) + 36 * kPanelRows - 1, 1);
    } else if (dtype == DType::kQ8_0) {
      refuses(1, 0x7c);
      refuses(last + 36 * kPanelRows * 2 - 1, 0xff);
    } else if (dtype == DType::kF32) {
      lines.data()[last + PanelBytesOf(view) - 2] = 0x80;
      refuses(last + PanelBytesOf(view) - 1, 0x7f);
    } else if (dtype == DType::kBf16) {
      lines.data()[0] = 0x80;
      refuses(1, 0x7f);
    } else {  // a float16 or, as its first two bytes, the scale of a row that is not in a panel
      refuses(1, 0x7c);
    }
  }
}

TEST(Pack, PanelsStartOnLinesAndPadWithZeros) {
  Rng rng(4);
  for (const DType dtype : {DType::kMxfp4, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                            DType::kQ5_1, DType::kIq4Nl, DType::kF32, DType::kF16, DType::kBf16}) {
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
