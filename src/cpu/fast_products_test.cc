// SPDX-License-Identifier: Apache-2.0
// Numerics `fast` against formulas of their own, in double precision: that every strip, scale and
// minimum is the one meant. That all tables have the scalar table's bits, kernels_test.cc shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cpu/matmul_input.h"
#include "cpu/pack_format.h"
#include "testing/kernels.h"

namespace hearth {
namespace {

using testing::Rng;
using testing::TestMatrix;

constexpr DType kIntegers[] = {DType::kMxfp4, DType::kQ8_0, DType::kQ4_0,  DType::kQ4_1,
                               DType::kQ5_0,  DType::kQ5_1, DType::kIq4Nl, DType::kQ2_K,
                               DType::kQ3_K,  DType::kQ4_K, DType::kQ5_K,  DType::kQ6_K,
                               DType::kIq4Xs};

// A row as the products are to see it: 255 steps from -amax to amax in every strip.
std::vector<double> Rounded(const std::vector<float>& row, int strip) {
  std::vector<double> out(row.size());
  for (size_t begin = 0; begin < row.size(); begin += static_cast<size_t>(strip)) {
    const size_t end = std::min(row.size(), begin + static_cast<size_t>(strip));
    double largest = 0;
    for (size_t i = begin; i < end; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(row[i])));
    }
    for (size_t i = begin; i < end; ++i) {
      if (largest > 0) out[i] = std::nearbyint(row[i] * 127 / largest) * largest / 127;
    }
  }
  return out;
}

TEST(FastProducts, EqualTheProductWithRoundedActivations) {
  Rng rng(41);
  for (const DType dtype : kIntegers) {
    const int cols = BlockShapeOf(dtype).elems == 256 ? 1280 : 1248, rows = 33, m = 3;
    const TestMatrix matrix(dtype, rows, cols, rng);
    const ActForm form = kForms[FormFor(matrix.packed.kind, Numerics::kFast)];
    ASSERT_EQ(form.planes, 1);
    ASSERT_EQ(form.strip, BlockShapeOf(dtype).elems == 256 ? 256 : 32);
    ActBuffer buffer;
    const Activations& x = buffer.Shape(m, cols, form);
    const int64_t stride = 48;
    std::vector<float> y(static_cast<size_t>(m * stride)), weights(static_cast<size_t>(cols));
    std::vector<std::vector<double>> inputs;
    for (int t = 0; t < m; ++t) {
      std::vector<float> row = rng.Normals(cols);
      // Strips of very different sizes: with another's scale a sum would be far off.
      for (int i = 0; i < cols; ++i) {
        row[static_cast<size_t>(i)] *= static_cast<float>(1 << (i / form.strip % 7));
      }
      ScalarKernels().quantise(row.data(), x, t);
      inputs.push_back(Rounded(row, form.strip));
    }
    const auto kind = static_cast<size_t>(matrix.packed.kind);
    ScalarKernels().fast.matmul[kind]({&matrix.packed, &x, nullptr, y.data(), stride}, 0, 3);
    int compared = 0;
    for (int r = 0; r < rows; ++r) {
      FormatOf(matrix.packed.kind)->unpack_row(matrix.packed, r, weights.data());
      for (int t = 0; t < m; ++t) {
        double sum = 0, size = 0;
        for (int i = 0; i < cols; ++i) {
          const double term = static_cast<double>(weights[static_cast<size_t>(i)]) *
                              inputs[static_cast<size_t>(t)][static_cast<size_t>(i)];
          sum += term;
          size += std::abs(term);
        }
        if (!std::isfinite(size) || size > 1e37 || size < 1e-30) continue;
        ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(t * stride + r)]), sum, 1e-5 * size)
            << NameOf(dtype) << " row " << r << " token " << t;
        ++compared;
      }
    }
    EXPECT_GT(compared, 20) << NameOf(dtype);
  }
}

TEST(FastProducts, ActivationsAreTheNearestOf255Steps) {
  Rng rng(42);
  for (const int strip : {kQuantBlock, kSuper}) {
    ActBuffer buffer;
    const int cols = 300;  // the last strip is short
    const Activations& x = buffer.Shape(1, cols, {strip, 1});
    std::vector<float> row = rng.Normals(cols, 3);
    for (int i = 64; i < 96; ++i) row[static_cast<size_t>(i)] = 0;
    ScalarKernels().quantise(row.data(), x, 0);
    for (int i = 0; i < cols; ++i) {
      const double step = static_cast<double>(x.scale[i / strip]);
      const double error = static_cast<double>(row[static_cast<size_t>(i)]) - x.lo[i] * step;
      EXPECT_LE(std::abs(error), step * 0.50001) << i;
      EXPECT_LE(std::abs(int{x.lo[i]}), 127);
    }
    // The largest of each strip is where the steps end.
    for (int begin = 0; begin < cols; begin += strip) {
      const auto at = [&](int i) { return std::abs(int{x.lo[i]}); };
      int largest = 0;
      for (int i = begin; i < std::min(cols, begin + strip); ++i)
        largest = std::max(largest, at(i));
      EXPECT_EQ(largest, strip == kQuantBlock && begin == 64 ? 0 : 127) << begin;
    }
    EXPECT_EQ(x.lo[cols], 0);
  }
}

// Formats that read floats, and formats that were added, have one product for both numerics.
TEST(FastProducts, EveryIntegerFormatHasOneAtEveryLevel) {
  for (const Isa isa : SupportedIsas()) {
    const KernelTable& table = KernelsOf(isa);
    for (int kind = 0; kind < kNumPackKinds; ++kind) {
      const bool is_integer = FormatOf(static_cast<PackKind>(kind))->strip != 0;
      EXPECT_EQ(table.fast.matmul[kind] != nullptr, is_integer) << NameOf(isa) << " " << kind;
    }
  }
}

}  // namespace
}  // namespace hearth
