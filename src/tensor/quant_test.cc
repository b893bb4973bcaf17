// SPDX-License-Identifier: Apache-2.0
// The decoders against hashes of what PyPI gguf decodes (tests/golden/quant). The blocks are built
// here by the rules of tools/oracle/quant_blocks.py, so no inputs are committed.
#include "tensor/quant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/num.h"
#include "testing/data.h"

namespace hearth {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int kRandomBlocks = 1024;
constexpr int kBlocksPerHash = 2;
constexpr uint64_t kFnvStart = 0xcbf29ce484222325ull;
constexpr uint16_t kSpecialF16[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400,
                                    0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00};

struct Case {
  DType dtype;
  std::vector<int> factors;  // offsets of the f16 factors
};
const Case kCases[] = {
    {DType::kF32, {}},        {DType::kF16, {}},     {DType::kBf16, {}},     {DType::kQ4_0, {0}},
    {DType::kQ4_1, {0, 2}},   {DType::kQ5_0, {0}},   {DType::kQ5_1, {0, 2}}, {DType::kQ8_0, {0}},
    {DType::kQ2_K, {80, 82}}, {DType::kQ3_K, {108}}, {DType::kQ4_K, {0, 2}}, {DType::kQ5_K, {0, 2}},
    {DType::kQ6_K, {208}},    {DType::kIq4Nl, {0}},  {DType::kIq4Xs, {0}},   {DType::kIq2Xxs, {0}},
    {DType::kMxfp4, {}},
};

uint64_t Fnv(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint64_t hash = kFnvStart;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

Bytes SplitmixBytes(uint64_t seed, size_t count) {
  Bytes bytes;
  while (bytes.size() < count) {
    seed += 0x9e3779b97f4a7c15ull;
    uint64_t z = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(z >> (8 * i)));
  }
  bytes.resize(count);
  return bytes;
}

// Formats of single values are tested in runs of 32.
BlockShape RunOf(DType dtype) {
  const BlockShape shape = BlockShapeOf(dtype);
  return shape.elems > 1 ? shape : BlockShape{32, shape.bytes * 32};
}

void AppendSpecialFactors(const Case& c, size_t size, uint64_t seed, Bytes& all) {
  const size_t seconds = c.factors.size() > 1 ? std::size(kSpecialF16) : 1;
  const size_t combos = std::size(kSpecialF16) * seconds;
  Bytes special = SplitmixBytes(seed ^ 1, combos * size);
  for (size_t i = 0; i < combos; ++i) {
    const uint16_t values[2] = {kSpecialF16[i / seconds], kSpecialF16[i % seconds]};
    for (size_t f = 0; f < c.factors.size(); ++f) {
      const size_t at = i * size + static_cast<size_t>(c.factors[f]);
      special[at] = static_cast<uint8_t>(values[f]);
      special[at + 1] = static_cast<uint8_t>(values[f] >> 8);
    }
  }
  all.insert(all.end(), special.begin(), special.end());
}

Bytes TestBlocks(const Case& c) {
  const std::string name = NameOf(c.dtype);
  const uint64_t seed = Fnv(name.data(), name.size());
  const auto size = static_cast<size_t>(RunOf(c.dtype).bytes);
  Bytes all = SplitmixBytes(seed, kRandomBlocks * size);
  for (int value = 0; value < 256; ++value) {
    all.insert(all.end(), size, static_cast<uint8_t>(value));
  }
  if (!c.factors.empty()) AppendSpecialFactors(c, size, seed, all);
  if (c.dtype == DType::kF16 || c.dtype == DType::kBf16) {  // every value there is
    for (int bits = 0; bits < 65536; ++bits) {
      all.push_back(static_cast<uint8_t>(bits));
      all.push_back(static_cast<uint8_t>(bits >> 8));
    }
  }
  if (c.dtype == DType::kMxfp4) {  // every byte under every scale
    for (int i = 0; i < 256 * 256; ++i) {
      if (i % 16 == 0) all.push_back(static_cast<uint8_t>(i / 256));
      all.push_back(static_cast<uint8_t>(i));
    }
  }
  return all;
}

const std::byte* Raw(const Bytes& bytes) {
  return reinterpret_cast<const std::byte*>(bytes.data());
}

// Which NaN an operation yields is the CPU's choice, so all are written alike.
std::vector<uint32_t> CanonicalBits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (float v : values) bits.push_back(std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v));
  return bits;
}

std::vector<float> DecodeAll(DType dtype, const Bytes& blocks) {
  const BlockShape shape = BlockShapeOf(dtype);
  std::vector<float> out(blocks.size() / static_cast<size_t>(shape.bytes) *
                         static_cast<size_t>(shape.elems));
  DecodeBlocks(dtype, Raw(blocks), static_cast<int64_t>(out.size()), out.data());
  return out;
}

TEST(Quant, DecodesWhatGgufDecodes) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(NameOf(c.dtype));
    const auto golden = testing::ReadArray<uint64_t>(
        testing::RepoPath("tests/golden/quant/" + std::string(NameOf(c.dtype)) + ".u64"));
    const std::vector<uint32_t> bits = CanonicalBits(DecodeAll(c.dtype, TestBlocks(c)));
    const auto per_hash = static_cast<size_t>(RunOf(c.dtype).elems * kBlocksPerHash);
    ASSERT_EQ(bits.size() / per_hash, golden.size());
    ASSERT_GE(golden.size() * kBlocksPerHash, 1000u);
    for (size_t i = 0; i < golden.size(); ++i) {
      ASSERT_EQ(Fnv(&bits[i * per_hash], per_hash * sizeof(uint32_t)), golden[i])
          << "in blocks " << i * kBlocksPerHash << " to " << (i + 1) * kBlocksPerHash - 1;
    }
  }
}

// By the table of the standard, without the doubling trick of the decoder.
TEST(Quant, Mxfp4ValuesAreTheStandards) {
  for (int scale = 0; scale < 256; ++scale) {
    for (int code = 0; code < 16; ++code) {
      Bytes block(17, static_cast<uint8_t>(code | code << 4));
      block[0] = static_cast<uint8_t>(scale);
      const double want = std::ldexp(double{F32FromE2m1(static_cast<uint8_t>(code))}, scale - 127);
      for (float value : DecodeAll(DType::kMxfp4, block)) {
        if (scale == 255) {
          ASSERT_TRUE(std::isnan(value)) << code;
        } else {
          ASSERT_EQ(value, static_cast<float>(want)) << "scale " << scale << " code " << code;
        }
      }
    }
  }
}

TEST(Quant, PlanesHoldTheSameValuesAsBlocks) {
  const Bytes blocks = TestBlocks(kCases[std::size(kCases) - 1]);
  const size_t count = blocks.size() / 17;
  Bytes nibbles, scales;
  for (size_t b = 0; b < count; ++b) {
    const uint8_t* block = &blocks[b * 17];
    scales.push_back(block[0]);
    const auto code = [&](int e) { return e < 16 ? block[1 + e] & 15 : block[1 + e - 16] >> 4; };
    for (int j = 0; j < 16; ++j) {
      nibbles.push_back(static_cast<uint8_t>(code(2 * j) | code(2 * j + 1) << 4));
    }
  }
  // As a matrix with three blocks to a row.
  const MatView matrix = {.data = Raw(nibbles),
                          .scales = Raw(scales),
                          .dtype = DType::kMxfp4Planes,
                          .rows = static_cast<int>(count / 3),
                          .cols = 96,
                          .row_bytes = 48,
                          .scale_row_bytes = 3};
  const std::vector<uint32_t> want = CanonicalBits(DecodeAll(DType::kMxfp4, blocks));
  for (int row = 0; row < matrix.rows; ++row) {
    std::vector<float> got(96);
    DecodeRow(matrix, row, got.data());
    const auto first = want.begin() + row * 96;
    ASSERT_EQ(CanonicalBits(got), std::vector<uint32_t>(first, first + 96)) << "row " << row;
  }
}

TEST(Quant, RowsOfBlocksMayLieApart) {
  // Every second row of a 4 x 64 Q8_0 matrix.
  const Bytes blocks = SplitmixBytes(7, 4 * 2 * 34);
  const std::vector<float> all = DecodeAll(DType::kQ8_0, blocks);
  const MatView whole = {
      .data = Raw(blocks), .dtype = DType::kQ8_0, .rows = 4, .cols = 64, .row_bytes = 68};
  const MatView odd = whole.EverySecondRow(1);
  std::vector<float> got(64);
  DecodeRow(odd, 1, got.data());
  EXPECT_EQ(CanonicalBits(got), CanonicalBits({all.begin() + 3 * 64, all.end()}));
}

TEST(Quant, ColumnsOfPlainValuesMayLieApart) {
  const Bytes bytes = SplitmixBytes(11, 3 * 5 * 4);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16}) {
    SCOPED_TRACE(NameOf(dtype));
    const int size = BlockShapeOf(dtype).bytes;
    const std::vector<float> all = DecodeAll(dtype, bytes);  // 3 x 5, seen as 5 x 3
    const MatView transposed = {.data = Raw(bytes),
                                .dtype = dtype,
                                .rows = 5,
                                .cols = 3,
                                .row_bytes = size,
                                .col_bytes = 5 * size};
    for (int row = 0; row < 5; ++row) {
      std::vector<float> got(3), want;
      DecodeRow(transposed, row, got.data());
      for (int col = 0; col < 3; ++col) want.push_back(all[static_cast<size_t>(col * 5 + row)]);
      EXPECT_EQ(CanonicalBits(got), CanonicalBits(want)) << "row " << row;
    }
  }
}

TEST(Quant, KnowsWhatItCannotDecode) {
  for (const Case& c : kCases) EXPECT_TRUE(CanDecode(c.dtype)) << NameOf(c.dtype);
  EXPECT_TRUE(CanDecode(DType::kMxfp4Planes));
  for (const DType dtype : {DType::kF64, DType::kI8, DType::kU8, DType::kI64, DType::kBool,
                            DType::kF8E4m3, DType::kF8E5m2}) {
    EXPECT_FALSE(CanDecode(dtype)) << NameOf(dtype);
  }
}

TEST(QuantDeath, WrongCallsAreBugs) {
  const Bytes bytes(64);
  float out[64];
  EXPECT_DEATH(DecodeBlocks(DType::kI32, Raw(bytes), 1, out), "decode != nullptr");
  EXPECT_DEATH(DecodeBlocks(DType::kQ8_0, Raw(bytes), 31, out), "count");
  const MatView one = {.data = Raw(bytes), .dtype = DType::kF32, .rows = 1, .cols = 2};
  EXPECT_DEATH(DecodeRow(one, 1, out), "row");
  EXPECT_DEATH(DecodeRow(one, 0, out), "col_bytes");
}

}  // namespace
}  // namespace hearth
