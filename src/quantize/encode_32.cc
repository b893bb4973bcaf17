// SPDX-License-Identifier: Apache-2.0
// Formats whose blocks hold 32 values: byte j carries value j in its low nibble and value j + 16 in
// its high one.
#include <array>
#include <cmath>
#include <cstring>

#include "base/num.h"
#include "quantize/block_encoders.h"
#include "quantize/fit.h"

namespace hearth {
namespace {

constexpr int kHalf = 16, kValues = 32;

// Codes of four bits and, where there is a fifth, those bits together in four bytes before them.
void PutCodes(const std::array<uint8_t, kValues>& codes, uint8_t* fifth, uint8_t* nibbles) {
  uint32_t high = 0;
  for (int j = 0; j < kHalf; ++j) {
    const uint8_t first = codes[static_cast<size_t>(j)],
                  second = codes[static_cast<size_t>(j + kHalf)];
    nibbles[j] = static_cast<uint8_t>((first & 15) | (second & 15) << 4);
    high |= static_cast<uint32_t>(first >> 4) << j | static_cast<uint32_t>(second >> 4)
                                                         << (j + kHalf);
  }
  if (fifth != nullptr) std::memcpy(fifth, &high, sizeof(high));
}

// Symmetric formats store codes from 0 on.
float FitFrom(const float* values, int low, std::array<uint8_t, kValues>& codes) {
  std::array<int8_t, kValues> centred{};
  const Line line = FitLine({values, kValues}, low, -low - 1, true, centred.data());
  for (size_t i = 0; i < kValues; ++i) codes[i] = static_cast<uint8_t>(centred[i] - low);
  return line.factor;
}

// Twice the nearest value of E2M1, as its code; ties go to the even code.
uint8_t NearestE2m1(float doubled) {
  constexpr float kBetween[] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
  const float size = std::fabs(doubled);
  uint8_t code = 0;
  for (const float bound : kBetween) {
    if (size > bound || (size == bound && code % 2 != 0)) ++code;
  }
  return static_cast<uint8_t>(code | (doubled < 0 && code != 0 ? 8 : 0));
}

}  // namespace

void EncodeQ4_0(const float* values, uint8_t* block) {
  std::array<uint8_t, kValues> codes{};
  PutF16(FitFrom(values, -8, codes), block);
  PutCodes(codes, nullptr, block + 2);
}

void EncodeQ4_1(const float* values, uint8_t* block) {
  std::array<uint8_t, kValues> codes{};
  const Affine line = FitAffine({values, kValues}, 15, true, false, codes.data());
  PutF16(line.factor, block);
  PutF16(line.offset, block + 2);
  PutCodes(codes, nullptr, block + 4);
}

void EncodeQ5_0(const float* values, uint8_t* block) {
  std::array<uint8_t, kValues> codes{};
  PutF16(FitFrom(values, -16, codes), block);
  PutCodes(codes, block + 2, block + 6);
}

void EncodeQ5_1(const float* values, uint8_t* block) {
  std::array<uint8_t, kValues> codes{};
  const Affine line = FitAffine({values, kValues}, 31, true, false, codes.data());
  PutF16(line.factor, block);
  PutF16(line.offset, block + 2);
  PutCodes(codes, block + 4, block + 8);
}

void EncodeQ8_0(const float* values, uint8_t* block) {
  std::array<int8_t, kValues> codes{};
  // -128 is not used: kernels may negate.
  PutF16(FitLine({values, kValues}, -127, 127, true, codes.data()).factor, block);
  std::memcpy(block + 2, codes.data(), kValues);
}

// The exponent that fits the largest value, and those beside it: clipping it may cost less than a
// coarser step for all others.
void EncodeMxfp4(const float* values, uint8_t* block) {
  float most = 0;
  for (int i = 0; i < kValues; ++i) most = std::max(most, std::fabs(values[i]));
  const int middle = most > 0 ? std::ilogb(most) - 2 + 127 : 0;
  double least = INFINITY;
  for (int scale = middle - 1; scale <= middle + 1; ++scale) {
    if (scale < 0 || scale >= kE8m0Nan) continue;
    std::array<uint8_t, kValues> codes{};
    const double unit = std::ldexp(1.0, scale - 127);
    double error = 0;
    for (size_t i = 0; i < kValues; ++i) {
      codes[i] = NearestE2m1(static_cast<float>(2 * values[i] / unit));
      const double off = values[i] - unit * F32FromE2m1(codes[i]);
      error += off * off;
    }
    if (!(error < least)) continue;
    least = error;
    block[0] = static_cast<uint8_t>(scale);
    PutCodes(codes, nullptr, block + 1);
  }
}

}  // namespace hearth
