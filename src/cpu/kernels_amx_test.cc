// SPDX-License-Identifier: Apache-2.0
// The AMX products against the scalar table, bit by bit, at every number of tokens around a tile
// and around a block of tiles, also where the table would choose another.
#include "cpu/kernels_amx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "cpu/matmul.h"
#include "testing/kernels.h"
#include "testing/rounds.h"

namespace hearth {
namespace {

using testing::Difference;
using testing::Rng;
using testing::TestMatrix;

struct Product {
  const char* name;
  DType dtype;
  MatmulKernel tiles;
  int most_tokens;
  int planes = 2;
};
constexpr int kAny = 272;
constexpr Product kProducts[] = {{"mxfp4", DType::kMxfp4, AmxMatmulMxfp4, kAny},
                                 {"mxfp4_planes", DType::kMxfp4Planes, AmxMatmulMxfp4, kAny},
                                 {"mxfp4_few", DType::kMxfp4, AmxMatmulMxfp4Few, kMostFewTokens},
                                 {"q8_0", DType::kQ8_0, AmxMatmulQ8, kAny},
                                 {"q4_0", DType::kQ4_0, AmxMatmulBlocks, kAny},
                                 {"q4_1", DType::kQ4_1, AmxMatmulBlocks, kAny},
                                 {"q5_0", DType::kQ5_0, AmxMatmulBlocks, kAny},
                                 {"q5_1", DType::kQ5_1, AmxMatmulBlocks, kAny},
                                 {"iq4_nl", DType::kIq4Nl, AmxMatmulBlocks, kAny},
                                 {"mxfp4_fast", DType::kMxfp4, AmxMatmulMxfp4Fast, kAny, 1},
                                 {"q8_0_fast", DType::kQ8_0, AmxMatmulQ8, kAny, 1},
                                 {"q4_0_fast", DType::kQ4_0, AmxMatmulBlocks, kAny, 1},
                                 {"q4_1_fast", DType::kQ4_1, AmxMatmulBlocks, kAny, 1},
                                 {"q5_0_fast", DType::kQ5_0, AmxMatmulBlocks, kAny, 1},
                                 {"q5_1_fast", DType::kQ5_1, AmxMatmulBlocks, kAny, 1},
                                 {"iq4_nl_fast", DType::kIq4Nl, AmxMatmulBlocks, kAny, 1}};

class Amx : public ::testing::TestWithParam<Product> {
 protected:
  void SetUp() override {
    if (BestIsa() < Isa::kAmx) GTEST_SKIP() << "SKIPPED LOUDLY: this machine has no AMX";
  }
  static DType dtype() { return GetParam().dtype; }
  static bool is_mxfp4() { return dtype() == DType::kMxfp4 || dtype() == DType::kMxfp4Planes; }
  static MatmulKernel tiles() { return GetParam().tiles; }
  static int Most(int tokens) { return std::min(tokens, GetParam().most_tokens); }

  // Whole buffers are compared, so that a store outside the asked panels shows as well.
  std::string Differs(const TestMatrix& matrix, const Activations& x, const float* bias, int begin,
                      int end) const {
    const int64_t stride = int64_t{NumPanels(matrix.packed.rows)} * kPanelRows + 16;
    std::vector<float> want(static_cast<size_t>(stride * x.m), -77.0f), got = want;
    const auto kind = static_cast<size_t>(matrix.packed.kind);
    const KernelTable& scalar = ScalarKernels();
    const MatmulKernel* twins = x.planes == 2 ? scalar.matmul : scalar.fast.matmul;
    twins[kind]({&matrix.packed, &x, bias, want.data(), stride}, begin, end);
    tiles()({&matrix.packed, &x, bias, got.data(), stride}, begin, end);
    return Difference(want, got);
  }
};
INSTANTIATE_TEST_SUITE_P(Products, Amx, ::testing::ValuesIn(kProducts),
                         [](const auto& product) { return std::string(product.param.name); });

// Ordinary rows with outliers, rows at the corners of both halves, rows of one full-scale value.
void FillRow(Rng& rng, int kind, std::vector<float>& row) {
  for (size_t i = 0; i < row.size(); ++i) {
    constexpr float kCorners[] = {32512, -32512, 32383, -32384, -128, 127, 128, 0};
    const float corner = i % kStrip == 0 ? 32512.0f : kCorners[rng.Int(0, 7)];
    const float normal = rng.Normal() * (i % 97 == 0 ? 250.0f : 1.0f);
    row[i] = kind == 0 ? corner : (kind == 1 ? -3.0f : normal);
  }
}

void Fill(Rng& rng, int planes, int m, int cols, ActBuffer& buffer) {
  const Activations& x = buffer.Shape(m, cols, {planes == 2 ? kStrip : kQuantBlock, planes});
  std::vector<float> row(static_cast<size_t>(cols));
  for (int t = 0; t < m; ++t) {
    FillRow(rng, rng.Int(0, 7), row);
    ScalarKernels().quantise(row.data(), x, t);
  }
}

TEST_P(Amx, EveryNumberOfTokens) {
  constexpr int kWidths[] = {32, 64, 288, 576, 608, 1152, 2880, 4096};
  std::vector<int> counts = {127, 128, 129, 144, 200, 272};
  for (int m = 1; m <= 70; ++m) counts.push_back(m);
  Rng rng(21);
  int cases = 0, spills = 0;
  for (const int m : counts) {
    if (m > GetParam().most_tokens) continue;
    for (int round = 0; round < Rounds(3); ++round) {
      const int i = (m + round) % 3;
      const int cols = kWidths[rng.Int(0, m > 100 ? 4 : 7)], rows = rng.Int(16, Rounds(100));
      const TestMatrix matrix(dtype(), rows, cols, rng);
      ActBuffer buffer;
      Fill(rng, GetParam().planes, m, cols, buffer);
      const int panels = NumPanels(rows);
      const std::vector<float> bias = rng.Normals(panels * kPanelRows);
      const int begin = i == 0 ? 0 : rng.Int(0, panels - 1);
      const int end = i == 0 ? panels : rng.Int(begin, panels);
      ASSERT_EQ(Differs(matrix, buffer.get(), i == 1 ? nullptr : bias.data(), begin, end), "")
          << rows << "x" << cols << ", m " << m << ", panels " << begin << ".." << end
          << ", spills " << matrix.packed.num_spills;
      spills += matrix.packed.num_spills;
      ++cases;
    }
  }
  EXPECT_EQ(spills > 0, is_mxfp4());
  std::printf("  %d products, %d spilled blocks\n", cases, spills);
}

TEST_P(Amx, EveryWidth) {
  Rng rng(22);
  for (int cols = 32; cols <= 1792; cols += 32) {
    const TestMatrix matrix(dtype(), 40, cols, rng);
    ActBuffer buffer;
    Fill(rng, GetParam().planes, Most(rng.Int(1, 36)), cols, buffer);
    ASSERT_EQ(Differs(matrix, buffer.get(), nullptr, 0, 3), "") << cols;
  }
}

TEST_P(Amx, NanRowsPoisonOnlyThemselves) {
  Rng rng(23);
  const int m = Most(37), cols = 608;
  const int poisoned[] = {0, m / 2 - 3, m / 2 - 2, m - 2};  // around a tile's end if there are two
  const TestMatrix matrix(is_mxfp4() ? DType::kMxfp4 : dtype(), 48, cols, rng);
  ActBuffer buffer;
  Fill(rng, GetParam().planes, m, cols, buffer);
  std::vector<float> before(static_cast<size_t>(48 * m)), after(before.size());
  tiles()({&matrix.packed, &buffer.get(), nullptr, before.data(), 48}, 0, 3);
  std::vector<float> row(static_cast<size_t>(cols), 1.0f);
  for (const int t : poisoned) {
    row[static_cast<size_t>(rng.Int(0, cols - 1))] = t == m - 2
                                                         ? -std::numeric_limits<float>::infinity()
                                                         : std::numeric_limits<float>::quiet_NaN();
    ScalarKernels().quantise(row.data(), buffer.get(), t);
  }
  EXPECT_EQ(Differs(matrix, buffer.get(), nullptr, 0, 3), "");
  tiles()({&matrix.packed, &buffer.get(), nullptr, after.data(), 48}, 0, 3);
  for (int t = 0; t < m; ++t) {
    const float* at = &after[static_cast<size_t>(48 * t)];
    if (std::find(std::begin(poisoned), std::end(poisoned), t) != std::end(poisoned)) {
      EXPECT_TRUE(std::all_of(at, at + 48, [](float v) { return std::isnan(v); })) << t;
    } else {
      EXPECT_EQ(Difference(&before[static_cast<size_t>(48 * t)], at, 48), "") << t;
    }
  }
}

}  // namespace
}  // namespace hearth
