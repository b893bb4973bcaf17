// SPDX-License-Identifier: Apache-2.0
// What a load must refuse inside the blocks, and that the message names the place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/quant.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

std::span<const std::byte> Span(const Bytes& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

constexpr size_t kBlocks = 1500;  // more than one group of the screen, and not a multiple of it

// Each format's f16 factors; an index counts blocks (single values for plain formats).
struct Place {
  DType dtype;
  int offset;
};
const Place kF16Places[] = {
    {DType::kF16, 0},   {DType::kQ4_0, 0},  {DType::kQ4_1, 0},   {DType::kQ4_1, 2},
    {DType::kQ5_0, 0},  {DType::kQ5_1, 0},  {DType::kQ5_1, 2},   {DType::kQ8_0, 0},
    {DType::kQ2_K, 80}, {DType::kQ2_K, 82}, {DType::kQ3_K, 108}, {DType::kQ4_K, 0},
    {DType::kQ4_K, 2},  {DType::kQ5_K, 0},  {DType::kQ5_K, 2},   {DType::kQ6_K, 208},
    {DType::kIq4Nl, 0}, {DType::kIq4Xs, 0}, {DType::kIq2Xxs, 0},
};

TEST(CheckBlocks, RefusesAnF16FactorThatIsNoNumber) {
  for (const auto& [dtype, offset] : kF16Places) {
    const auto size = static_cast<size_t>(BlockShapeOf(dtype).bytes);
    for (const size_t at : {size_t{0}, size_t{511}, size_t{512}, kBlocks - 1}) {
      for (const int bits : {0x7c00, 0xfc00, 0x7e00, 0x7c01}) {
        SCOPED_TRACE(Printf("%s, byte %d", NameOf(dtype), offset));
        Bytes bytes(kBlocks * size, 0x35);  // finite everywhere
        ASSERT_TRUE(CheckBlocks(dtype, Span(bytes)).ok());
        bytes[at * size + static_cast<size_t>(offset)] = static_cast<uint8_t>(bits);
        bytes[at * size + static_cast<size_t>(offset) + 1] = static_cast<uint8_t>(bits >> 8);
        const Status status = CheckBlocks(dtype, Span(bytes));
        ASSERT_EQ(status.code(), Code::kCorrupt);
        EXPECT_THAT(status.message(), HasSubstr(Printf(" %zu ", at)));
        EXPECT_THAT(status.message(), HasSubstr(NameOf(dtype)));
      }
    }
  }
}

TEST(CheckBlocks, AcceptsTheLargestFactor) {
  for (const auto& [dtype, offset] : kF16Places) {
    Bytes bytes(static_cast<size_t>(BlockShapeOf(dtype).bytes) * kBlocks, 0);
    bytes[static_cast<size_t>(offset)] = 0xff;
    bytes[static_cast<size_t>(offset) + 1] = 0xfb;  // -65504
    EXPECT_TRUE(CheckBlocks(dtype, Span(bytes)).ok()) << NameOf(dtype);
  }
}

// The screens for plain floats agree with the library on every 16-bit upper half.
TEST(CheckBlocks, RefusesPlainValuesThatAreNoNumbers) {
  for (int high = 0; high < 65536; ++high) {
    const Bytes bf16 = {0, 0, static_cast<uint8_t>(high), static_cast<uint8_t>(high >> 8)};
    float as_f32, as_bf16[2];
    DecodeBlocks(DType::kF32, Span(bf16).data(), 1, &as_f32);
    DecodeBlocks(DType::kBf16, Span(bf16).data(), 2, as_bf16);
    ASSERT_EQ(CheckBlocks(DType::kF32, Span(bf16)).ok(), std::isfinite(as_f32)) << high;
    ASSERT_EQ(CheckBlocks(DType::kBf16, Span(bf16)).ok(), std::isfinite(as_bf16[1])) << high;
  }
  const Bytes low_nan = {1, 0, 0x80, 0x7f};  // a NaN by its lowest bit only
  EXPECT_THAT(CheckBlocks(DType::kF32, Span(low_nan)).message(), HasSubstr("F32 value 0 "));
}

TEST(CheckBlocks, RefusesMxfp4ByItsScale) {
  Bytes bytes(kBlocks * 17, 0);
  ASSERT_TRUE(CheckBlocks(DType::kMxfp4, Span(bytes)).ok());
  bytes[1027 * 17] = 255;
  const Status status = CheckBlocks(DType::kMxfp4, Span(bytes));
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("block 1027 has the scale byte 255"));
}

TEST(CheckBlocks, Refuses255InPlanesToo) {
  Bytes nibbles(kBlocks * 16, 0xff), scales(kBlocks, 127);
  ASSERT_TRUE(CheckPlanes(Span(nibbles), Span(scales)).ok());
  scales[kBlocks - 1] = 255;
  const Status status = CheckPlanes(Span(nibbles), Span(scales));
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("block 1499 has the scale byte 255"));
}

// A scale of 253 or 254 is legal, but with a large code the weight no longer fits a float.
TEST(CheckBlocks, RefusesMxfp4OnlyWhereAValueOverflows) {
  for (int scale = 0; scale < 256; ++scale) {
    for (int code = 0; code < 16; ++code) {
      Bytes block(17, 0);
      block[0] = static_cast<uint8_t>(scale);
      block[9] = static_cast<uint8_t>(code << 4);
      float values[32];
      DecodeBlocks(DType::kMxfp4, Span(block).data(), 32, values);
      bool finite = true;
      for (float v : values) finite = finite && std::isfinite(v);
      ASSERT_EQ(CheckBlocks(DType::kMxfp4, Span(block)).ok(), finite) << scale << " " << code;
      const Bytes nibbles(block.begin() + 1, block.end()), scales(1, block[0]);
      ASSERT_EQ(CheckPlanes(Span(nibbles), Span(scales)).ok(), finite) << scale << " " << code;
    }
  }
}

TEST(CheckBlocks, OtherTypesForbidNothing) {
  const Bytes bytes(64, 0xff);
  EXPECT_TRUE(CheckBlocks(DType::kI32, Span(bytes)).ok());
  EXPECT_TRUE(CheckBlocks(DType::kU8, Span(bytes)).ok());
  EXPECT_TRUE(CheckBlocks(DType::kQ8_0, {}).ok());
}

}  // namespace
}  // namespace hearth
