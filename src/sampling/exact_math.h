// SPDX-License-Identifier: Apache-2.0
// The few functions sampling needs, made of additions, multiplications and bit operations alone:
// the same bits on every processor and with every compiler, which the C library's do not promise.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
namespace hearth {

// Four lanes are the vector of the oldest x86-64 and of arm64; lanes never mix, so a compiler may
// also run two or four of them at once without changing a bit.
typedef float Float4 __attribute__((vector_size(16)));
typedef uint32_t Bits4 __attribute__((vector_size(16)));
typedef double Double4 __attribute__((vector_size(32)));

inline Float4 Splat(float x) { return Float4{x, x, x, x}; }

inline Float4 LoadFour(const float* from) {
  Float4 four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

inline void StoreFour(float* to, Float4 four) { std::memcpy(to, &four, sizeof four); }

// Lanes of `four` where `where` is all ones, 0 elsewhere.
inline Float4 Only(Bits4 where, Float4 four) {
  return std::bit_cast<Float4>(std::bit_cast<Bits4>(four) & where);
}

inline Float4 Choose(Bits4 where, Float4 yes, Float4 no) {
  return std::bit_cast<Float4>((std::bit_cast<Bits4>(yes) & where) |
                               (std::bit_cast<Bits4>(no) & ~where));
}

inline Float4 Larger(Float4 a, Float4 b) { return Choose(std::bit_cast<Bits4>(a > b), a, b); }

// e^x for x <= 0 with a relative error below 3e-7; 0 below -87, where float32 has no normal numbers
// left. 2^n * p(r): n = x / ln 2 rounded to nearest even, |r| <= ln 2 / 2, p of degree 6.
inline Float4 ExpOfNonPositive(Float4 x) {
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // n * kLn2High is exact
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the float.
  constexpr float kRound = 12582912.0f;
  const Float4 shifted = x * kLog2E + kRound;
  const Float4 n = shifted - kRound;
  const Float4 r = (x - n * kLn2High) - n * kLn2Low;
  Float4 p = Splat(1.3981999507e-3f);
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const Bits4 power = (std::bit_cast<Bits4>(shifted) << 23) + (127u << 23);
  return Only(std::bit_cast<Bits4>(x >= Splat(-87.0f)), p * std::bit_cast<Float4>(power));
}

inline float ExpOfNonPositive(float x) { return ExpOfNonPositive(Splat(x))[0]; }

// ln x for a positive normal x, within 2 units in the last place (of 1 near 1).
inline double NaturalLog(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  // Mantissas from sqrt(1/2) to sqrt(2): the series below wants numbers near 1.
  const uint64_t offset = bits - 0x3fe6a09e667f3bcdu;
  const auto exponent = static_cast<double>(static_cast<int64_t>(offset) >> 52);
  bits -= offset & 0xfff0000000000000u;
  const double m = std::bit_cast<double>(bits);
  const double s = (m - 1) / (m + 1);  // ln m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172
  const double z = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * z + 1.0 / k;
  return exponent * 0.693147180559945309417 + 2 * s * series;
}

}  // namespace hearth
