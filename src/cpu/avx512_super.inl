// SPDX-License-Identifier: Apache-2.0
// Taking units of K-quants and IQ4_XS apart with AVX-512, for decode and for tiles. Included inside
// the unnamed namespace of a kernel file, after panels_super.h.

#include "cpu/level.inl"

struct alignas(64) Iq4Table {
  uint8_t at[64];
};
// Codes plus 128, four times over: the permutation's index then needs no mask.
constexpr Iq4Table MakeIq4Table() {
  Iq4Table table{};
  for (int i = 0; i < 64; ++i) table.at[i] = static_cast<uint8_t>(kIq4Codes[i % 16] + 128);
  return table;
}
constexpr Iq4Table kIq4Table = MakeIq4Table();

using Vec = __m512i;
inline __m512i LoadLine(const uint8_t* at) { return _mm512_load_si512(at); }
inline __m512i Masked(__m512i x, int mask) {
  return _mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(mask)));
}
// (x & mask) | rest
inline __m512i Select(__m512i x, int mask, __m512i rest) {
  return _mm512_ternarylogic_epi32(x, _mm512_set1_epi8(static_cast<char>(mask)), rest, 0xea);
}
// Left by so many bits, or right where negative. Bits that cross a byte are masked by the caller.
template <int kLeft>
inline __m512i Shifted(__m512i x) {
  if constexpr (kLeft > 0) return _mm512_slli_epi16(x, kLeft);
  if constexpr (kLeft < 0) return _mm512_srli_epi16(x, -kLeft);
  return x;
}
// Codes plus 128. With VBMI the index needs no mask: the table repeats.
inline __m512i LookUpIq4(__m512i codes) {
  const __m512i table = _mm512_load_si512(kIq4Table.at);
  return kVbmi ? _mm512_permutexvar_epi8(codes, table)
               : _mm512_shuffle_epi8(table, Masked(codes, 15));
}

#include "cpu/super_codes.inl"

// Scales and minima of group kGroup's sub-blocks, a 32-bit lane a row. Minima come in pairs of
// 16-bit values, for products of 16 bits.
template <PackKind kKind>
struct GroupScales {
  __m512i scale[kSubs<kKind>], min_pair[kSubs<kKind> / 2];
};

template <PackKind kKind>
[[gnu::always_inline]] inline GroupScales<kKind> ScalesOf(const uint8_t* unit, int group) {
  GroupScales<kKind> out;
  const uint8_t* scales = unit + SuperLayoutOf(kKind).scales_at;
  if constexpr (kKind == PackKind::kQ4K || kKind == PackKind::kQ5K) {
    __m512i six;
    if (group < 3) {
      six = LoadLine(scales + group * 64);
    } else {
      const __m512i a = _mm512_srli_epi32(LoadLine(scales), 24);
      const __m512i b = _mm512_srli_epi32(LoadLine(scales + 64), 24);
      const __m512i c = _mm512_srli_epi32(LoadLine(scales + 128), 24);
      six = _mm512_or_si512(a, _mm512_or_si512(_mm512_slli_epi32(b, 8), _mm512_slli_epi32(c, 16)));
    }
    const __m512i mask = _mm512_set1_epi32(63);
    out.scale[0] = _mm512_and_si512(six, mask);
    out.scale[1] = _mm512_and_si512(_mm512_srli_epi32(six, 6), mask);
    const __m512i first = _mm512_and_si512(_mm512_srli_epi32(six, 12), mask);
    const __m512i second = _mm512_and_si512(_mm512_srli_epi32(six, 18), mask);
    out.min_pair[0] = _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
  } else {
#pragma GCC unroll 4
    for (int s = 0; s < kSubs<kKind>; ++s) {
      const auto* at =
          reinterpret_cast<const __m128i*>(scales + (group * kSubs<kKind> + s) * kPanelRows);
      out.scale[s] = _mm512_cvtepi8_epi32(_mm_load_si128(at));
    }
    if constexpr (kKind == PackKind::kQ2K) {
      const __m512i nibble = _mm512_set1_epi32(15);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const __m512i first = _mm512_srli_epi32(out.scale[2 * i], 4);
        const __m512i second = _mm512_srli_epi32(out.scale[2 * i + 1], 4);
        out.min_pair[i] = _mm512_or_si512(_mm512_and_si512(first, nibble),
                                          _mm512_slli_epi32(_mm512_and_si512(second, nibble), 16));
        out.scale[2 * i] = _mm512_and_si512(out.scale[2 * i], nibble);
        out.scale[2 * i + 1] = _mm512_and_si512(out.scale[2 * i + 1], nibble);
      }
    }
  }
  return out;
}

inline __m512 Factors(const uint8_t* unit, int which) {  // 0: d, 1: dmin
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(unit + which * 32)));
}

inline __m512i Broadcast32(const void* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return _mm512_set1_epi32(value);
}

// The float steps of a superblock, in their order: first its exact sums, then its minima.
template <int kPlanes>
[[gnu::always_inline]] inline __m512 AddExact(const __m512i (&exact)[kPlanes], __m512 d,
                                              __m512 x_scale, __m512 sum) {
  const __m512 scale = _mm512_mul_ps(d, x_scale);
  if constexpr (kPlanes == 2) {
    const __m512 high = _mm512_mul_ps(_mm512_set1_ps(256.0f), scale);
    sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact[0]), high, sum);
  }
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact[kPlanes - 1]), scale, sum);
}
[[gnu::always_inline]] inline __m512 TakeMinima(__m512i exact, __m512 dmin, __m512 x_scale,
                                                __m512 sum) {
  return _mm512_fnmadd_ps(_mm512_cvtepi32_ps(exact), _mm512_mul_ps(dmin, x_scale), sum);
}
