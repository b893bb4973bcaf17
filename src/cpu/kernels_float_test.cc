// SPDX-License-Identifier: Apache-2.0
// Products with F32, F16 and BF16 weights: every table against the scalar one, and the scalar one
// against the definition for formats that are not packed, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "cpu/kernels.h"
#include "tensor/quant.h"
#include "testing/kernels.h"

namespace hearth {
namespace {

using testing::Difference;
using testing::IsaTestName;
using testing::Rng;
using testing::TestMatrix;

class FloatKernels : public testing::KernelsOfIsa {};
INSTANTIATE_TEST_SUITE_P(All, FloatKernels, ::testing::ValuesIn(testing::kVectorIsas), IsaTestName);

constexpr DType kFormats[] = {DType::kF32, DType::kF16, DType::kBf16};

// Rows of floats with some room between them: ordinary ones, all finite ones, tiny ones, and some
// with a NaN or an infinity.
struct Input {
  Input(Rng& rng, int rows, int cols) : m(rows), stride(cols + rng.Int(0, 3) * 4) {
    values.resize(static_cast<size_t>(stride * m), 99.0f);
    for (int t = 0; t < m; ++t) {
      float* row = &values[static_cast<size_t>(t * stride)];
      const int kind = rng.Int(0, 7);
      for (int i = 0; i < cols; ++i) {
        row[i] = kind == 1 ? rng.AnyFinite() : rng.Normal() * (kind == 2 ? 0x1p-120f : 1.0f);
      }
      constexpr float kPoison[] = {std::numeric_limits<float>::quiet_NaN(),
                                   std::numeric_limits<float>::infinity(),
                                   -std::numeric_limits<float>::infinity()};
      if (kind == 3) row[rng.Int(0, cols - 1)] = kPoison[rng.Int(0, 2)];
    }
  }
  int m;
  int64_t stride;
  std::vector<float> values;
};

// Into a buffer that is compared whole, so that a store outside the asked panels shows as well.
std::vector<float> Product(const KernelTable& table, const TestMatrix& matrix, const Input& x,
                           const float* bias, int begin, int end) {
  const int64_t stride = int64_t{NumPanels(matrix.packed.rows)} * kPanelRows + 16;
  std::vector<float> y(static_cast<size_t>(stride * x.m), -77.0f);
  Activations shape{};
  shape.m = x.m;
  const MatmulArgs args{&matrix.packed, &shape, bias, y.data(), stride, x.values.data(), x.stride};
  table.matmul[static_cast<size_t>(matrix.packed.kind)](args, begin, end);
  return y;
}

TEST(ScalarFloatKernels, AreTheDotOfDecodedRows) {
  Rng rng(31);
  for (const DType dtype : kFormats) {
    for (const int cols : {32, 64, 96, 288, 2880}) {
      const int rows = rng.Int(1, 40), m = rng.Int(1, 5), stride = NumPanels(rows) * 16 + 16;
      const TestMatrix matrix(dtype, rows, cols, rng);
      ASSERT_NE(matrix.packed.kind, PackKind::kRaw);
      const Input x(rng, m, cols);
      const std::vector<float> bias = rng.Normals(stride);
      const std::vector<float> got =
          Product(ScalarKernels(), matrix, x, bias.data(), 0, NumPanels(rows));
      std::vector<float> row(static_cast<size_t>(cols)), want(static_cast<size_t>(m)), column(want);
      for (int r = 0; r < rows; ++r) {
        DecodeRow(matrix.view, r, row.data());
        ScalarKernels().dot_rows(row.data(), x.values.data(), x.stride, cols, m, want.data());
        for (int t = 0; t < m; ++t) {
          want[static_cast<size_t>(t)] += bias[static_cast<size_t>(r)];
          column[static_cast<size_t>(t)] = got[static_cast<size_t>(t * stride + r)];
        }
        ASSERT_EQ(Difference(want, column), "") << NameOf(dtype) << " row " << r << ", " << cols;
      }
    }
  }
}

TEST_P(FloatKernels, AreTheScalarOnes) {
  Rng rng(32);
  for (const DType dtype : kFormats) {
    int cases = 0;
    const auto check = [&](int rows, int cols, int m) {
      const TestMatrix matrix(dtype, rows, cols, rng);
      const Input x(rng, m, cols);
      const int panels = NumPanels(rows);
      const std::vector<float> bias = rng.Normals(panels * kPanelRows);
      const int begin = rng.OneIn(2) ? 0 : rng.Int(0, panels - 1);
      const int end = rng.OneIn(2) ? panels : rng.Int(begin, panels);
      const float* maybe_bias = rng.OneIn(2) ? bias.data() : nullptr;
      ASSERT_EQ(Difference(Product(ScalarKernels(), matrix, x, maybe_bias, begin, end),
                           Product(table(), matrix, x, maybe_bias, begin, end)),
                "")
          << NameOf(dtype) << " " << rows << "x" << cols << ", m " << m << ", panels " << begin
          << ".." << end << ", bias " << (maybe_bias != nullptr);
      ++cases;
    };
    for (int m = 1; m <= 40; ++m) {
      for (const int cols : {32, 32 * rng.Int(2, 30)}) {
        check(rng.Int(1, 50), cols, m);
        if (HasFatalFailure()) return;
      }
    }
    for (const int cols : {2880, 4096}) {
      check(rng.Int(1, 20), cols, rng.Int(1, 13));
      if (HasFatalFailure()) return;
    }
    std::printf("  %s: %d matrices\n", NameOf(dtype), cases);
  }
}

// Which tokens and panels run together changes nothing for each of them.
TEST_P(FloatKernels, RowsDoNotDependOnTheirNeighbours) {
  Rng rng(33);
  for (const DType dtype : kFormats) {
    const int cols = 1184, rows = 50, stride = 80;
    const TestMatrix matrix(dtype, rows, cols, rng);
    const Input all(rng, 37, cols);
    const std::vector<float> together = Product(table(), matrix, all, nullptr, 0, 4);
    for (int t = 0; t < all.m; ++t) {
      Input one = all;
      one.m = 1;
      one.values.erase(one.values.begin(), one.values.begin() + t * all.stride);
      for (int p = 0; p < 4; ++p) {
        const std::vector<float> alone = Product(table(), matrix, one, nullptr, p, p + 1);
        ASSERT_EQ(Difference(&together[static_cast<size_t>(t * stride + p * 16)],
                             &alone[static_cast<size_t>(p) * 16], 16),
                  "")
            << NameOf(dtype) << " token " << t << " panel " << p;
      }
    }
  }
}

}  // namespace
}  // namespace hearth
