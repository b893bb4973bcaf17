// SPDX-License-Identifier: Apache-2.0
// The small formats are small enough to be tested whole: every pattern, against formulas in double
// precision and against the compiler's own _Float16.
#include "base/num.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace hearth {
namespace {

// The value of a sign/exponent/fraction pattern by its definition; infinities and NaN by IEEE.
double ByDefinition(uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits & ((1u << fraction_bits) - 1));
  const double sign = (bits >> (exponent_bits + fraction_bits)) & 1u ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

TEST(F16, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = F32FromF16(static_cast<uint16_t>(bits));
    const double expected = ByDefinition(bits, 5, 10);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      const uint16_t back = F16FromF32(value);
      ASSERT_TRUE((back & 0x7c00) == 0x7c00 && (back & 0x3ff) != 0) << bits;
      ASSERT_EQ(back >> 15, bits >> 15) << "a NaN keeps its sign";
      continue;
    }
    ASSERT_TRUE(SameBits(value, static_cast<float>(expected))) << bits;
    ASSERT_EQ(F16FromF32(value), bits);
  }
}

TEST(Bf16, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = F32FromBf16(static_cast<uint16_t>(bits));
    const double expected = ByDefinition(bits, 8, 7);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(F32FromBf16(Bf16FromF32(value)))) << bits;
      continue;
    }
    ASSERT_TRUE(SameBits(value, static_cast<float>(expected))) << bits;
    ASSERT_EQ(Bf16FromF32(value), bits);
  }
}

// Rounds by comparing distances in double precision; ties go to the even pattern.
template <float (*Decode)(uint16_t)>
uint16_t NearestByDistance(float value, uint16_t below, uint16_t above) {
  const double low = std::fabs(double{value} - double{Decode(below)});
  const double high = std::fabs(double{Decode(above)} - double{value});
  if (low != high) return low < high ? below : above;
  return (below & 1) == 0 ? below : above;
}

// Floats at, and one step to either side of, the middle of every pair of neighbours.
std::vector<float> AroundMiddle(float below, float above) {
  const auto middle = static_cast<float>((double{below} + double{above}) / 2);
  return {middle, std::nextafterf(middle, 0.0f), std::nextafterf(middle, HUGE_VALF)};
}

TEST(F16, RoundsEveryHalfwayPointToEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    for (const float value : AroundMiddle(F32FromF16(bits), F32FromF16(next))) {
      const uint16_t expected = NearestByDistance<F32FromF16>(value, bits, next);
      ASSERT_EQ(F16FromF32(value), expected) << value;
      ASSERT_EQ(F16FromF32(-value), expected | 0x8000) << -value;
    }
  }
  EXPECT_EQ(F16FromF32(65519.996f), 0x7bff);
  EXPECT_EQ(F16FromF32(65520.0f), 0x7c00);
  EXPECT_EQ(F16FromF32(-65520.0f), 0xfc00);
}

TEST(Bf16, RoundsEveryHalfwayPointToEven) {
  for (uint16_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    for (const float value : AroundMiddle(F32FromBf16(bits), F32FromBf16(next))) {
      const uint16_t expected = NearestByDistance<F32FromBf16>(value, bits, next);
      ASSERT_EQ(Bf16FromF32(value), expected) << value;
      ASSERT_EQ(Bf16FromF32(-value), expected | 0x8000) << -value;
    }
  }
  EXPECT_EQ(Bf16FromF32(std::numeric_limits<float>::max()), 0x7f80) << "rounds up to infinity";
}

#ifdef __FLT16_MAX__
uint16_t ByCompiler(float value) {
  __extension__ using Half = _Float16;
  return std::bit_cast<uint16_t>(static_cast<Half>(value));
}

TEST(F16, AgreesWithTheCompilerOnRandomFloats) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000000; ++i) {
    auto bits = static_cast<uint32_t>(random());
    // Half of them where F16 has values: exponents from below its subnormals to above its range.
    if (i % 2 == 0) bits = (bits & 0x807fffffu) | ((100u + bits % 45u) << 23);
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(F32FromF16(F16FromF32(value))));
      continue;
    }
    ASSERT_EQ(F16FromF32(value), ByCompiler(value)) << value;
  }
}
#endif

TEST(E8m0, EveryCode) {
  for (int code = 0; code < 255; ++code) {
    const float value = F32FromE8m0(static_cast<uint8_t>(code));
    EXPECT_EQ(double{value}, std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(F32FromE8m0(kE8m0Nan)));
}

TEST(E2m1, EveryCode) {
  for (uint8_t code = 0; code < 16; ++code) {
    // Two exponent bits with bias 1 and one fraction bit; no infinity, no NaN.
    const int exponent = (code >> 1) & 3;
    const int fraction = code & 1;
    const double magnitude =
        exponent == 0 ? 0.5 * fraction : std::ldexp(1.0 + 0.5 * fraction, exponent - 1);
    const auto expected = static_cast<float>(code & 8 ? -magnitude : magnitude);
    EXPECT_TRUE(SameBits(F32FromE2m1(code), expected)) << int{code};
  }
  EXPECT_TRUE(SameBits(F32FromE2m1(8), -0.0f));
}

TEST(E4m3, EveryCode) {
  for (int bits = 0; bits < 256; ++bits) {
    const float value = F32FromE4m3(static_cast<uint8_t>(bits));
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    const int exponent = (bits >> 3) & 15;
    const int fraction = bits & 7;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    EXPECT_TRUE(SameBits(value, static_cast<float>(bits & 0x80 ? -magnitude : magnitude))) << bits;
  }
  EXPECT_EQ(F32FromE4m3(0x7e), 448.0f) << "the largest of the format";
}

// Usable at compile time, where the tables of weight formats are made.
static_assert(F32FromF16(0x3c00) == 1.0f && F16FromF32(0.333251953125f) == 0x3555);
static_assert(F32FromBf16(0x3f80) == 1.0f && Bf16FromF32(1.0f) == 0x3f80);
static_assert(F32FromE8m0(127) == 1.0f && F32FromE2m1(15) == -6.0f && F32FromE4m3(0x38) == 1.0f);

}  // namespace
}  // namespace hearth
