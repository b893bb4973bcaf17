// SPDX-License-Identifier: Apache-2.0
// Seeded inputs with all the corners that floats have, packed matrices, and a comparison of bits in
// which any NaN equals any NaN: what checks of kernels and tests of them share.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/num.h"
#include "cpu/pack.h"
#include "cpu/panels.h"
#include "tensor/tensor.h"
namespace hearth::proof {

class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed) {}
  int Int(int low, int high) {  // both ends included
    return low + static_cast<int>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int n) { return Int(1, n) == 1; }
  float Normal() { return normal_(engine_); }
  uint8_t Byte() { return static_cast<uint8_t>(engine_()); }
  uint32_t Bits() { return static_cast<uint32_t>(engine_()); }
  std::vector<float> Normals(int n, float scale = 1.0f) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = Normal() * scale;
    return values;
  }
  // Floats of every size, zeros of both signs and subnormals included; finite.
  float AnyFinite() {
    for (;;) {
      const auto value = std::bit_cast<float>(Bits());
      if (OneIn(16)) return OneIn(2) ? 0.0f : -0.0f;
      if (std::isfinite(value)) return value;
    }
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<float> normal_;
};

inline bool SameFloat(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// The first place where two arrays differ, or "" when they have the same bits.
inline std::string Difference(const float* want, const float* got, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (SameFloat(want[i], got[i])) continue;
    char text[128];
    std::snprintf(text, sizeof text, "at %zu of %zu: want %a (%08x), got %a (%08x)", i, n,
                  static_cast<double>(want[i]), std::bit_cast<uint32_t>(want[i]),
                  static_cast<double>(got[i]), std::bit_cast<uint32_t>(got[i]));
    return text;
  }
  return "";
}
inline std::string Difference(const std::vector<float>& want, const std::vector<float>& got) {
  if (want.size() != got.size()) return "different sizes";
  return Difference(want.data(), got.data(), want.size());
}

// Bytes that start on a cache line.
class Lines {
 public:
  explicit Lines(size_t size) : bytes_(size + 64) {}
  uint8_t* data() {
    return bytes_.data() + (64 - reinterpret_cast<uintptr_t>(bytes_.data()) % 64) % 64;
  }

 private:
  std::vector<uint8_t> bytes_;
};

// A matrix as a file would hold it, and packed.
struct TestMatrix {
  TestMatrix(DType dtype, int rows, int cols, Rng& rng);
  MatView view;
  PackedMatrix packed{};
  // Byte `at` of a block as the file has it; what is packed does not follow.
  uint8_t* FileByte(int row, int block, int at) {
    const int each = BlockShapeOf(view.dtype).bytes;
    return &file_[static_cast<size_t>(row * view.row_bytes + block * each + at)];
  }

 private:
  void FillMxfp4(Rng& rng);
  void FillBlocks(Rng& rng, int block_bytes, const std::vector<size_t>& factors);
  void FillFloats(Rng& rng);
  std::vector<uint8_t> file_, scales_;
  std::vector<SpilledBlock> spills_;
  Lines panels_{0};
};

// Mostly neighbouring exponents; some strips reach over the whole range, so that blocks spill.
inline uint8_t TestExponent(Rng& rng, int mode) {
  if (mode == 0) return static_cast<uint8_t>(rng.Int(118, 121));
  if (mode == 1 && !rng.OneIn(8)) return static_cast<uint8_t>(rng.Int(118, 121));
  return static_cast<uint8_t>(rng.OneIn(4) ? (rng.OneIn(2) ? rng.Int(0, 5) : rng.Int(250, 254))
                                           : rng.Int(0, 254));
}

inline void TestMatrix::FillMxfp4(Rng& rng) {
  const bool planes = view.dtype == DType::kMxfp4Planes;
  const int blocks = view.cols / kQuantBlock;
  const int each = planes ? 16 : 17;
  view.row_bytes = int64_t{each} * blocks;
  view.scale_row_bytes = planes ? blocks : 0;
  file_.resize(static_cast<size_t>(view.row_bytes * view.rows));
  scales_.resize(static_cast<size_t>(blocks * view.rows));
  for (uint8_t& byte : file_) byte = rng.Byte();
  for (int row = 0; row < view.rows; ++row) {
    const int mode = row % 3 == 0 ? 0 : (row % 3 == 1 ? 1 : (rng.OneIn(4) ? 2 : 0));
    for (int b = 0; b < blocks; ++b) {
      uint8_t* block = &file_[static_cast<size_t>(row * view.row_bytes + b * each)];
      const uint8_t exponent = TestExponent(rng, mode);
      (planes ? scales_[static_cast<size_t>(row * blocks + b)] : block[0]) = exponent;
      if (rng.OneIn(20)) std::memset(block + each - 16, rng.OneIn(2) ? 0 : 0x88, 16);
      if (rng.OneIn(20)) std::memset(block + each - 16, rng.OneIn(2) ? 0x77 : 0xff, 16);
    }
  }
}

// Where a block keeps its f16 factors, for formats that have any.
inline std::vector<size_t> FactorsOf(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIq4Nl:
    case DType::kIq4Xs:
      return {0};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    default:
      return {};
  }
}

// Finite f16 factors of every size, mostly around 2^-7; codes of every kind, some all alike.
inline void TestMatrix::FillBlocks(Rng& rng, int block_bytes, const std::vector<size_t>& factors) {
  for (uint8_t& byte : file_) byte = rng.Byte();
  for (size_t at = 0; at < file_.size(); at += static_cast<size_t>(block_bytes)) {
    if (rng.OneIn(20)) {
      constexpr uint8_t kAlike[] = {0x80, 0x7f, 0x00, 0xff};
      std::memset(&file_[at], kAlike[rng.Int(0, 3)], static_cast<size_t>(block_bytes));
    }
    for (const size_t factor_at : factors) {
      auto factor = static_cast<uint16_t>(0x2000 + rng.Int(0, 0x7ff));
      if (rng.OneIn(10)) factor = static_cast<uint16_t>(rng.Int(0, 0x7bff) | (rng.Int(0, 1) << 15));
      std::memcpy(&file_[at + factor_at], &factor, 2);
    }
  }
}

// One kind of value per row: ordinary ones, all finite ones, tiny ones whose products vanish, and
// what is no number here and there.
inline void TestMatrix::FillFloats(Rng& rng) {
  const int64_t each = view.col_bytes = BlockShapeOf(view.dtype).bytes;
  view.row_bytes = each * view.cols;
  file_.resize(static_cast<size_t>(view.row_bytes * view.rows));
  for (int row = 0; row < view.rows; ++row) {
    const int kind = rng.Int(0, 7);
    for (int i = 0; i < view.cols; ++i) {
      float value = rng.Normal();
      if (kind == 1) value = rng.AnyFinite();
      if (kind == 2) value *= view.dtype == DType::kF16 ? 0x1p-16f : 0x1p-130f;
      if (kind == 3 && rng.OneIn(40)) value = rng.OneIn(2) ? 0.0f : -0.0f;
      const uint16_t half = view.dtype == DType::kF16 ? F16FromF32(value) : Bf16FromF32(value);
      uint8_t* at = &file_[static_cast<size_t>(row * view.row_bytes + i * each)];
      std::memcpy(at, each == 4 ? static_cast<const void*>(&value) : &half,
                  static_cast<size_t>(each));
      // All bits of every kind, NaN and infinity among them.
      if (kind == 4 && rng.OneIn(200)) at[each - 1] = at[each - 2] = rng.OneIn(2) ? 0x7f : 0xff;
    }
  }
}

inline TestMatrix::TestMatrix(DType dtype, int rows, int cols, Rng& rng) {
  view.dtype = dtype;
  view.rows = rows;
  view.cols = cols;
  if (dtype == DType::kMxfp4 || dtype == DType::kMxfp4Planes) {
    FillMxfp4(rng);
  } else if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBf16) {
    FillFloats(rng);
  } else {
    const BlockShape shape = BlockShapeOf(dtype);
    view.row_bytes = int64_t{cols} / shape.elems * shape.bytes;
    view.col_bytes = shape.elems == 1 ? shape.bytes : 0;
    file_.resize(static_cast<size_t>(view.row_bytes * rows));
    FillBlocks(rng, shape.bytes, FactorsOf(dtype));
  }
  view.data = reinterpret_cast<const std::byte*>(file_.data());
  view.scales = reinterpret_cast<const std::byte*>(scales_.data());
  panels_ = Lines(static_cast<size_t>(PackedBytes(view)));
  PackPanels(view, 0, NumPanels(rows), panels_.data(), spills_);
  packed = {PackKindOf(view),
            static_cast<uint8_t>(dtype),
            rows,
            cols,
            panels_.data(),
            PanelBytesOf(view),
            spills_.data(),
            static_cast<int>(spills_.size())};
}

}  // namespace hearth::proof
