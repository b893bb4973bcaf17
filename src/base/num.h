// SPDX-License-Identifier: Apache-2.0
// The small number formats that weights come in, to and from float. Scalar, exact, constexpr.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
namespace hearth {

constexpr float F32FromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr uint16_t Bf16FromF32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float F32FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
  }
  // Subnormal: fraction * 2^-24, which a float holds exactly.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

// Rounds to nearest, ties to even; too large becomes infinity, a NaN stays a (quiet) NaN.
constexpr uint16_t F16FromF32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: count in units of 2^-24
    // Adding 0.5 lines the float's last bit up with 2^-24, so the FPU does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// E8M0: a bare power of two, 2^(bits - 127). 255 is NaN by the OCP standard; 0 is 2^-127, which
// a float holds only as a subnormal.
constexpr uint8_t kE8m0Nan = 255;
constexpr float F32FromE8m0(uint8_t bits) {
  if (bits == kE8m0Nan) return std::numeric_limits<float>::quiet_NaN();
  if (bits == 0) return 0x1p-127f;
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 23);
}

// E2M1, the 4-bit float of MXFP4: sign, two exponent bits, one fraction bit.
constexpr float F32FromE2m1(uint8_t code) {
  constexpr float kMagnitude[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float magnitude = kMagnitude[code & 7];
  return (code & 8) != 0 ? -magnitude : magnitude;
}

// FP8 E4M3 ("fn": no infinities, 0x7f and 0xff are NaN).
constexpr float F32FromE4m3(uint8_t bits) {
  const uint32_t exponent = (bits >> 3) & 15u;
  const uint32_t fraction = bits & 7u;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? static_cast<float>(fraction) * 0x1p-9f
                              : std::bit_cast<float>(((exponent + 120u) << 23) | (fraction << 20));
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace hearth
