// SPDX-License-Identifier: Apache-2.0
// Every table against the scalar one, bit by bit: products of matrices and what runs per row.
// Attention is in attend_test.cc.
#include "cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/matmul.h"
#include "cpu/pack_format.h"
#include "testing/kernels.h"
#include "testing/rounds.h"

namespace hearth {
namespace {

using testing::Difference;
using testing::IsaTestName;
using testing::Rng;
using testing::TestMatrix;

class Kernels : public testing::KernelsOfIsa {};
INSTANTIATE_TEST_SUITE_P(All, Kernels, ::testing::ValuesIn(testing::kVectorIsas), IsaTestName);

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Rows of activations of several kinds, one kind per row.
std::vector<float> TestRow(Rng& rng, int cols, int kind) {
  std::vector<float> row = rng.Normals(cols);
  switch (kind) {
    case 0:
      break;
    case 1:  // outliers
      for (int i = 0; i < cols; i += 97) row[static_cast<size_t>(i)] *= 250.0f;
      break;
    case 2:  // exact integers at the corners of both halves: hi +-127, lo -128 and 127
      for (int i = 0; i < cols; ++i) {
        constexpr float kCorners[] = {32512, -32512, 32384, -32384, 32639 - 256, -128, 127, 128};
        row[static_cast<size_t>(i)] = i % kStrip == 0 ? 32512.0f : kCorners[rng.Int(0, 7)];
      }
      break;
    case 3:
      std::fill(row.begin(), row.end(), rng.OneIn(2) ? 0.0f : -0.0f);
      break;
    case 4:  // below what has an inverse
      for (float& value : row) value *= 0x1p-110f;
      break;
    case 5:
      for (float& value : row) value = rng.AnyFinite();
      break;
    default:  // all the same sign at full scale: the largest sums there are
      std::fill(row.begin(), row.end(), kind == 6 ? 3.0f : -3.0f);
  }
  return row;
}
constexpr int kRowKinds = 8;

constexpr Numerics kNumerics[] = {Numerics::kExact, Numerics::kFast};
ActForm FormOf(const PackedMatrix& matrix, Numerics numerics) {
  return kForms[FormFor(matrix.kind, numerics)];
}

// As the kernel of a packed matrix reads them.
ActBuffer Quantised(Rng& rng, const PackedMatrix& matrix, Numerics numerics, int m,
                    int first_kind) {
  const int cols = matrix.cols;
  ActBuffer buffer;
  const Activations& x = buffer.Shape(m, cols, FormOf(matrix, numerics));
  for (int t = 0; t < m; ++t) {
    ScalarKernels().quantise(TestRow(rng, cols, (first_kind + t) % kRowKinds).data(), x, t);
  }
  return buffer;
}

MatmulKernel MatmulOf(const KernelTable& table, const TestMatrix& matrix, const Activations& x) {
  const auto kind = static_cast<size_t>(matrix.packed.kind);
  return x.planes == 1 ? table.fast.matmul[kind] : table.matmul[kind];
}

// Runs both tables into buffers that are compared whole, so that a store outside the asked panels
// shows as well. Tiles must be right for few tokens too, where another kernel is the faster one.
std::string MatmulDifference(const KernelTable& table, const TestMatrix& matrix,
                             const Activations& x, const float* bias, int begin, int end) {
  const int64_t stride = int64_t{NumPanels(matrix.packed.rows)} * kPanelRows + 16;
  std::vector<float> want(static_cast<size_t>(stride * x.m), -77.0f), got = want;
  MatmulOf(ScalarKernels(), matrix, x)({&matrix.packed, &x, bias, want.data(), stride}, begin, end);
  MatmulOf(table, matrix, x)({&matrix.packed, &x, bias, got.data(), stride}, begin, end);
  const std::string difference = Difference(want, got);
  const auto kind = static_cast<size_t>(matrix.packed.kind);
  const MatmulKernel tiles = (x.planes == 1 ? table.fast.tiles : table.tiles)[kind].kernel;
  if (difference != "" || tiles == nullptr) return difference;
  std::fill(got.begin(), got.end(), -77.0f);
  tiles({&matrix.packed, &x, bias, got.data(), stride}, begin, end);
  return Difference(want, got);
}

// The nearest width above that the format can have.
int WidthFor(DType dtype, int cols) {
  const int unit = std::max(kQuantBlock, BlockShapeOf(dtype).elems);
  return (cols + unit - 1) / unit * unit;
}

// Fewer where they are long or many, and under sanitizers: the scalar table takes most of the time.
// One token runs through three panels at once, so it keeps enough rows for that.
int MostRows(int cols, int m) {
  if (cols >= 2000) return m == 1 ? 40 : Rounds(40);
  return m == 1 ? 100 : Rounds(100);
}

// Under sanitizers every third number of tokens, another third with each width.
constexpr int kEach = Rounds(10) == 10 ? 1 : 3;

void CheckMatmuls(const KernelTable& table, DType dtype, Numerics numerics, uint64_t seed) {
  Rng rng(seed);
  int cases = 0;
  const auto check = [&](int rows, int cols, int m) {
    const TestMatrix matrix(dtype, rows, cols, rng);
    ActBuffer buffer = Quantised(rng, matrix.packed, numerics, m, rng.Int(0, kRowKinds - 1));
    const std::vector<float> bias = rng.Normals(NumPanels(rows) * kPanelRows);
    const int panels = NumPanels(rows);
    const int begin = rng.OneIn(2) ? 0 : rng.Int(0, panels - 1);
    const int end = rng.OneIn(2) ? panels : rng.Int(begin, panels);
    const float* maybe_bias = rng.OneIn(2) ? bias.data() : nullptr;
    const std::string difference =
        MatmulDifference(table, matrix, buffer.get(), maybe_bias, begin, end);
    ASSERT_EQ(difference, "") << NameOf(dtype) << " " << rows << "x" << cols << ", m " << m
                              << ", panels " << begin << ".." << end << ", bias "
                              << (maybe_bias != nullptr) << ", spills " << matrix.packed.num_spills;
    ++cases;
  };
  for (int cols : {32, 64, 288, 544, 576, 608, 1184, 2880, 4096}) {
    const int first = 1 + cases % kEach;
    cols = WidthFor(dtype, cols);
    for (int m = first; m <= 9; m += kEach) {
      check(rng.Int(1, MostRows(cols, m)), cols, m);
      if (::testing::Test::HasFatalFailure()) return;
    }
    check(rng.Int(1, Rounds(cols < 2000 ? 60 : 20)), cols, rng.Int(10, 40));
    if (::testing::Test::HasFatalFailure()) return;
  }
  for (int m = 1 + cases % kEach; m <= 40; m += kEach) {
    check(rng.Int(1, Rounds(100)), WidthFor(dtype, rng.Int(1, 40) * kQuantBlock), m);
    if (::testing::Test::HasFatalFailure()) return;
  }
  // More rows than go through the panels together.
  check(rng.Int(17, 40), WidthFor(dtype, 608), 128 + rng.Int(1, 30));
  std::printf("  %s: %d matrices\n", NameOf(dtype), cases);
}

constexpr DType kPacked[] = {DType::kMxfp4, DType::kMxfp4Planes, DType::kQ8_0, DType::kQ4_0,
                             DType::kQ4_1,  DType::kQ5_0,        DType::kQ5_1, DType::kIq4Nl,
                             DType::kQ2_K,  DType::kQ3_K,        DType::kQ4_K, DType::kQ5_K,
                             DType::kQ6_K,  DType::kIq4Xs};

TEST_P(Kernels, Products) {
  for (const DType dtype : kPacked) {
    CheckMatmuls(table(), dtype, Numerics::kExact, 11 + static_cast<uint64_t>(dtype));
  }
}
TEST_P(Kernels, FastProducts) {
  for (const DType dtype : kPacked) {
    CheckMatmuls(table(), dtype, Numerics::kFast, 31 + static_cast<uint64_t>(dtype));
  }
}

// Which tokens run together changes nothing for each of them.
TEST_P(Kernels, RowsDoNotDependOnTheirNeighbours) {
  Rng rng(14);
  for (const Numerics numerics : kNumerics) {
    for (const DType dtype : kPacked) {
      const TestMatrix matrix(dtype, 50, WidthFor(dtype, 1184), rng);
      ActBuffer all = Quantised(rng, matrix.packed, numerics, 37, 0);
      const int64_t stride = 64;
      std::vector<float> together(static_cast<size_t>(stride) * 37), alone(together.size());
      const MatmulKernel product = MatmulOf(table(), matrix, all.get());
      product({&matrix.packed, &all.get(), nullptr, together.data(), stride}, 0, 4);
      for (int t = 0; t < 37; ++t) {
        const Activations one = all.Part(t, 1);
        for (int p = 0; p < 4; ++p) {
          product({&matrix.packed, &one, nullptr, alone.data() + t * stride, stride}, p, p + 1);
        }
      }
      EXPECT_EQ(Difference(together, alone), "") << NameOf(dtype);
    }
  }
}

TEST_P(Kernels, WhatIsNoNumberSpoilsItsOwnRowOnly) {
  Rng rng(15);
  for (const float poison : {kNan, -kNan, kInf, -kInf}) {
    for (const DType dtype : kPacked) {
      const Numerics numerics = kNumerics[rng.Int(0, 1)];
      const int cols = WidthFor(dtype, 1184), m = 11, bad = rng.Int(0, m - 1);
      const TestMatrix matrix(dtype, 33, cols, rng);
      ActBuffer buffer;
      const Activations& x = buffer.Shape(m, cols, FormOf(matrix.packed, numerics));
      for (int t = 0; t < m; ++t) {
        std::vector<float> row = rng.Normals(cols);
        if (t == bad) row[static_cast<size_t>(rng.Int(0, cols - 1))] = poison;
        table().quantise(row.data(), x, t);
      }
      const int64_t stride = 48;
      std::vector<float> y(static_cast<size_t>(stride) * m);
      MatmulOf(table(), matrix, x)({&matrix.packed, &x, nullptr, y.data(), stride}, 0, 3);
      for (int t = 0; t < m; ++t) {
        for (int r = 0; r < 33; ++r) {
          const float value = y[static_cast<size_t>(t * stride + r)];
          // Weights with exponents near the top of the range may overflow honestly.
          const bool mxfp4 = dtype == DType::kMxfp4 || dtype == DType::kMxfp4Planes;
          if (mxfp4 && t != bad && r % 3 != 0) continue;
          ASSERT_EQ(std::isnan(value), t == bad) << NameOf(dtype) << " token " << t << " row " << r;
        }
      }
      EXPECT_EQ(MatmulDifference(table(), matrix, x, nullptr, 0, 3), "");
    }
  }
}

// Calls f(name, values, count) for what a form has of three rows.
template <class F>
void EachArray(const Activations& x, F&& f) {
  const int all = 3 * x.stride, blocks = 3 * x.num_blocks;
  f("scale", x.scale, 3 * x.num_strips);
  f("lo", x.lo, all);
  f("sum_lo", x.sum_lo, blocks);
  if (x.planes == 2) f("hi", x.hi, all);
  if (x.planes == 2) f("sum_hi", x.sum_hi, blocks);
  if (x.strip == kStrip) f("whole", x.whole, all);
  if (x.strip != kSuper) return;
  f("sum16_lo", x.sum16_lo, 2 * blocks);
  f("sum32_lo", x.sum32_lo, blocks);
  if (x.planes != 2) return;
  f("sum16_hi", x.sum16_hi, 2 * blocks);
  f("sum32_hi", x.sum32_hi, blocks);
}
void Fill(const Activations& x) {
  EachArray(x, [](const char*, auto* values, int count) {
    std::memset(values, 0x55, sizeof(*values) * static_cast<size_t>(count));
  });
}
// Also beyond the row that was asked for.
std::string FirstDifferent(const Activations& a, const Activations& b) {
  std::vector<std::string> bytes;
  EachArray(b, [&](const char*, auto* values, int count) {
    bytes.emplace_back(reinterpret_cast<const char*>(values),
                       sizeof(*values) * static_cast<size_t>(count));
  });
  std::string first;
  size_t i = 0;
  EachArray(a, [&](const char* name, auto* values, int) {
    const std::string& other = bytes[i++];
    if (first.empty() && std::memcmp(values, other.data(), other.size()) != 0) first = name;
  });
  return first;
}

TEST_P(Kernels, Quantise) {
  Rng rng(16);
  for (int i = 0; i < 800; ++i) {
    const int cols = i < 400 ? i / 4 + 1 : rng.Int(1, 3000);
    std::vector<float> row = TestRow(rng, cols, i / 4 % kRowKinds);
    if (rng.OneIn(5)) {
      constexpr float kPoison[] = {kNan, kInf, -kInf, -kNan};
      row[static_cast<size_t>(rng.Int(0, cols - 1))] = kPoison[rng.Int(0, 3)];
    }
    ActBuffer want, got;
    for (ActBuffer* buffer : {&want, &got}) {
      Fill(buffer->Shape(3, cols, kForms[i % kNumForms]));  // the middle row is written
    }
    ScalarKernels().quantise(row.data(), want.get(), 1);
    table().quantise(row.data(), got.get(), 1);
    ASSERT_EQ(FirstDifferent(want.get(), got.get()), "")
        << "cols " << cols << ", form " << i % kNumForms;
    const Activations& x = want.get();
    for (int j = x.stride; x.whole != nullptr && j < 2 * x.stride; ++j) {
      ASSERT_EQ(x.whole[j], 256 * x.hi[j] + x.lo[j]) << "cols " << cols;
    }
  }
}

// n values, a third of the time with every kind of float among them.
std::vector<float> Floats(Rng& rng, int n, float scale) {
  std::vector<float> values = rng.Normals(n, scale);
  const int kind = rng.Int(0, 5);
  for (float& value : values) {
    if (kind == 0) value = rng.AnyFinite();
    if (kind == 1 && rng.OneIn(50)) value = rng.OneIn(2) ? kNan : (rng.OneIn(2) ? kInf : -kInf);
  }
  return values;
}

TEST_P(Kernels, DotRows) {
  Rng rng(17);
  for (int i = 0; i < 400; ++i) {
    const int cols = i < 70 ? i + 1 : rng.Int(1, 3000), m = rng.Int(1, 20);
    const int64_t stride = cols + rng.Int(0, 5);
    const std::vector<float> w = Floats(rng, cols, 1),
                             x = Floats(rng, static_cast<int>(stride) * m, 1);
    std::vector<float> want(static_cast<size_t>(m) + 1, -7.0f), got = want;
    ScalarKernels().dot_rows(w.data(), x.data(), stride, cols, m, want.data());
    table().dot_rows(w.data(), x.data(), stride, cols, m, got.data());
    ASSERT_EQ(Difference(want, got), "") << "cols " << cols << ", m " << m;
  }
}

TEST_P(Kernels, DotRowsKeepsTheSignOfAVanishingSum) {
  // Products below the smallest subnormal leave -0.0 in some lanes; a kernel that runs the tail
  // over zeros would turn it into +0.0.
  for (const int cols : {1, 7, 16, 17, 33}) {
    std::vector<float> w(static_cast<size_t>(cols), 0x1p-100f), x(w.size(), -0x1p-100f), want(1),
        got(1);
    ScalarKernels().dot_rows(w.data(), x.data(), cols, cols, 1, want.data());
    table().dot_rows(w.data(), x.data(), cols, cols, 1, got.data());
    EXPECT_EQ(Difference(want, got), "") << "cols " << cols;
  }
}

TEST_P(Kernels, RmsNorm) {
  Rng rng(18);
  for (int i = 0; i < 300; ++i) {
    const int n = i < 70 ? i + 1 : rng.Int(1, 3000);
    const std::vector<float> x = Floats(rng, n, 2), gain = Floats(rng, n, 1);
    std::vector<float> want(static_cast<size_t>(n) + 1, -7.0f), got = want, in_place = x;
    ScalarKernels().rms_norm(x.data(), gain.data(), 1e-5f, n, want.data());
    table().rms_norm(x.data(), gain.data(), 1e-5f, n, got.data());
    table().rms_norm(in_place.data(), gain.data(), 1e-5f, n, in_place.data());
    ASSERT_EQ(Difference(want, got), "") << "n " << n;
    ASSERT_EQ(Difference(want.data(), in_place.data(), in_place.size()), "") << "in place, n " << n;
  }
}

TEST_P(Kernels, Glu) {
  Rng rng(19);
  for (int i = 0; i < 300; ++i) {
    const int n = i < 70 ? i + 1 : rng.Int(1, 3000);
    std::vector<float> gate = Floats(rng, n, rng.OneIn(3) ? 60.0f : 3.0f);
    const std::vector<float> up = Floats(rng, n, 5);
    const float alpha = i % 2 == 0 ? 1.702f : 1.0f, limit = i % 2 == 0 ? 7.0f : 0.0f;
    std::vector<float> want(static_cast<size_t>(n) + 1, -7.0f), got = want;
    ScalarKernels().glu(gate.data(), up.data(), alpha, limit, n, want.data());
    table().glu(gate.data(), up.data(), alpha, limit, n, got.data());
    ASSERT_EQ(Difference(want, got), "") << "n " << n;
    table().glu(gate.data(), up.data(), alpha, limit, n, gate.data());
    ASSERT_EQ(Difference(want.data(), gate.data(), gate.size()), "") << "in place, n " << n;
  }
}

// The exponential over its whole range, through silu with alpha -1 and through softmax.
TEST_P(Kernels, ExponentialEverywhere) {
  std::vector<float> x, up;
  for (int64_t bits = 0; bits < int64_t{1} << 32; bits += 65521) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (float at = -90.0f; at < 90.0f; at += 0.00371f) x.push_back(at);
  for (const float at : {-87.0f, 88.0f, -0.0f, 0.0f}) {
    for (const float to : {-kInf, kInf}) x.push_back(std::nextafter(at, to));
    x.insert(x.end(), 19, at);
  }
  up.assign(x.size(), 1.0f);
  std::vector<float> want(x.size()), got(x.size());
  const auto n = static_cast<int>(x.size());
  ScalarKernels().glu(x.data(), up.data(), -1.0f, 0.0f, n, want.data());
  table().glu(x.data(), up.data(), -1.0f, 0.0f, n, got.data());
  EXPECT_EQ(Difference(want, got), "");
  // One plus a small exponential hides it: with 0 as the largest value, softmax shows it bare.
  for (size_t i = 0; i + 19 <= x.size(); i += 19) {
    want.assign(1, 0.0f);
    for (size_t j = i; j < i + 19; ++j) want.push_back(x[j] <= 0.0f ? x[j] : -x[j]);
    got = want;
    ScalarKernels().softmax(want.data(), 20);
    table().softmax(got.data(), 20);
    ASSERT_EQ(Difference(want, got), "") << "from " << x[i];
  }
}

TEST_P(Kernels, Rope) {
  Rng rng(20);
  for (int i = 0; i < 300; ++i) {
    const int pairs = i < 80 ? i + 1 : rng.Int(1, 128);
    const bool neighbours = rng.OneIn(2);
    const std::vector<float> cos = rng.Normals(pairs), sin = rng.Normals(pairs);
    std::vector<float> want = Floats(rng, 2 * pairs + 3, 1), got = want;
    ScalarKernels().rope(want.data(), cos.data(), sin.data(), 2 * pairs, neighbours);
    table().rope(got.data(), cos.data(), sin.data(), 2 * pairs, neighbours);
    ASSERT_EQ(Difference(want, got), "") << pairs << " pairs, neighbours " << neighbours;
  }
}

TEST_P(Kernels, AddScaled) {
  Rng rng(21);
  for (int i = 0; i < 300; ++i) {
    const int n = i < 70 ? i + 1 : rng.Int(1, 3000);
    const std::vector<float> x = Floats(rng, n, 1);
    std::vector<float> want = Floats(rng, n + 3, 1), got = want;
    const float factor = rng.OneIn(2) ? 1.0f : rng.Normal();
    ScalarKernels().add_scaled(x.data(), factor, n, want.data());
    table().add_scaled(x.data(), factor, n, got.data());
    ASSERT_EQ(Difference(want, got), "") << "n " << n;
  }
}

TEST_P(Kernels, Softmax) {
  Rng rng(22);
  for (int i = 0; i < 300; ++i) {
    const int n = i < 70 ? i + 1 : rng.Int(1, 600);
    std::vector<float> want = Floats(rng, n, rng.OneIn(2) ? 3.0f : 40.0f), got;
    want.push_back(-7.0f);  // not to be touched
    got = want;
    const bool want_ok = ScalarKernels().softmax(want.data(), n);
    EXPECT_EQ(table().softmax(got.data(), n), want_ok);
    ASSERT_EQ(Difference(want, got), "") << "n " << n;
  }
}

}  // namespace
}  // namespace hearth
