// SPDX-License-Identifier: Apache-2.0
#include "quantize/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "tensor/quant.h"

namespace hearth {
namespace {

struct Bound {
  DType dtype;
  double most;   // error of normally distributed values that may be left, relative
  double least;  // and what no encoder of so many bits reaches: a test of the test
};
constexpr Bound kBounds[] = {
    {DType::kF16, 3e-4, 1e-5},    {DType::kBf16, 2e-3, 1e-4},   {DType::kQ8_0, 0.0065, 0.003},
    {DType::kQ6_K, 0.020, 0.010}, {DType::kQ5_K, 0.038, 0.020}, {DType::kQ5_1, 0.040, 0.020},
    {DType::kQ5_0, 0.045, 0.020}, {DType::kQ4_K, 0.076, 0.045}, {DType::kQ4_1, 0.078, 0.045},
    {DType::kQ4_0, 0.088, 0.045}, {DType::kMxfp4, 0.125, 0.06},
};

std::vector<float> Draw(size_t count, unsigned seed, float scale = 0.02f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::byte> Encoded(DType dtype, std::span<const float> values) {
  const BlockShape shape = BlockShapeOf(dtype);
  std::vector<std::byte> out(values.size() / static_cast<size_t>(shape.elems) *
                             static_cast<size_t>(shape.bytes));
  EncodeBlocks(dtype, values.data(), static_cast<int64_t>(values.size()), out.data());
  return out;
}

std::vector<float> Decoded(DType dtype, std::span<const std::byte> bytes, size_t count) {
  std::vector<float> values(count);
  DecodeBlocks(dtype, bytes.data(), static_cast<int64_t>(count), values.data());
  return values;
}

double ErrorOf(std::span<const float> want, std::span<const float> got) {
  double error = 0, square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(want[i]) - got[i], 2);
    square += std::pow(want[i], 2);
  }
  return square > 0 ? std::sqrt(error / square) : std::sqrt(error);
}

TEST(Encode, LeavesTheErrorThatItsBitsAllow) {
  const std::vector<float> values = Draw(1 << 14, 1);
  for (const Bound& bound : kBounds) {
    const double error =
        ErrorOf(values, Decoded(bound.dtype, Encoded(bound.dtype, values), values.size()));
    EXPECT_LT(error, bound.most) << NameOf(bound.dtype);
    EXPECT_GT(error, bound.least) << NameOf(bound.dtype);
  }
}

// What a format can say exactly comes back exactly: nothing is lost by a second pass.
TEST(Encode, KeepsWhatWasEncoded) {
  const std::vector<float> values = Draw(1 << 12, 2);
  for (const Bound& bound : kBounds) {
    const std::vector<float> once =
        Decoded(bound.dtype, Encoded(bound.dtype, values), values.size());
    const std::vector<float> twice =
        Decoded(bound.dtype, Encoded(bound.dtype, once), values.size());
    // K-quants choose scales anew and may land beside them.
    const bool is_grouped = BlockShapeOf(bound.dtype).elems == 256;
    EXPECT_LE(ErrorOf(once, twice), is_grouped ? bound.most / 2 : 1e-6) << NameOf(bound.dtype);
  }
}

TEST(Encode, TakesZerosConstantsAndOutliers) {
  std::vector<std::vector<float>> blocks;
  blocks.emplace_back(256, 0.0f);
  blocks.emplace_back(256, 0.25f);
  blocks.emplace_back(256, -0.25f);
  blocks.emplace_back(256, 1e-30f);  // below what an f16 factor can say: becomes zero
  blocks.push_back(Draw(256, 3));
  blocks.back()[17] = 40.0f;
  for (const Bound& bound : kBounds) {
    for (const std::vector<float>& values : blocks) {
      const std::vector<std::byte> bytes = Encoded(bound.dtype, values);
      EXPECT_TRUE(CheckBlocks(bound.dtype, bytes).ok()) << NameOf(bound.dtype);
      const std::vector<float> got = Decoded(bound.dtype, bytes, values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_LE(std::fabs(got[i] - values[i]), 0.2f * std::fabs(values[i]) + 2.7f)
            << NameOf(bound.dtype) << " " << i;
      }
      if (values[0] == 0) {
        EXPECT_EQ(got, values) << NameOf(bound.dtype);
      }
    }
  }
}

TEST(Encode, KnowsWhatItWrites) {
  for (const Bound& bound : kBounds) EXPECT_TRUE(CanEncode(bound.dtype));
  EXPECT_TRUE(CanEncode(DType::kF32));
  EXPECT_FALSE(CanEncode(DType::kQ2_K));
  EXPECT_FALSE(CanEncode(DType::kI32));
}

}  // namespace
}  // namespace hearth
