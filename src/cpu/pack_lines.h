// SPDX-License-Identifier: Apache-2.0
// Moving rows into panels with SSE2, which every x86-64 has, so that no table of kernels is needed.
#pragma once
#include <immintrin.h>

#include <cstdint>
namespace hearth {

// All exponent bits of an f16: set together, the value is a NaN or an infinity.
inline constexpr uint16_t kF16Exponent = 0x7c00;

inline __m128i LoadLine(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
inline void StoreLine(uint8_t* at, __m128i value) {
  _mm_store_si128(reinterpret_cast<__m128i*>(at), value);
}

// Four rows of four words become four columns of four.
inline void Transpose(__m128i* q) {
  const __m128i a = _mm_unpacklo_epi32(q[0], q[1]), b = _mm_unpackhi_epi32(q[0], q[1]);
  const __m128i c = _mm_unpacklo_epi32(q[2], q[3]), d = _mm_unpackhi_epi32(q[2], q[3]);
  q[0] = _mm_unpacklo_epi64(a, c);
  q[1] = _mm_unpackhi_epi64(a, c);
  q[2] = _mm_unpacklo_epi64(b, d);
  q[3] = _mm_unpackhi_epi64(b, d);
}

// Whether all of `count` f16 values are finite. Without a branch, so that the compiler can use
// whole vectors.
inline bool FiniteF16s(const uint16_t* values, int count) {
  uint16_t suspects = 0;
  for (int i = 0; i < count; ++i) {
    // Carries into the sign when all exponent bits are set.
    suspects |= static_cast<uint16_t>((values[i] & kF16Exponent) + 0x0400);
  }
  return suspects >> 15 == 0;
}

}  // namespace hearth
