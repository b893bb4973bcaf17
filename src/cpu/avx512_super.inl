// SPDX-License-Identifier: Apache-2.0
// Taking units of K-quants and IQ4_XS apart with AVX-512, for decode and for tiles. Included inside
// the unnamed namespace of a kernel file, after panels_super.h.

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

// What is to be taken from an unpacked code to get the integer it stands for.
template <PackKind kKind>
constexpr int kCodeOffset = kKind == PackKind::kIq4Xs ? 128 : SuperLayoutOf(kKind).offset;

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

// Line kLine of a Q5_K group with its fifth bits.
template <int kLine>
inline void UnpackFiveBits(const uint8_t* group, const __m512i (&fifth)[2], __m512i (&w)[16]) {
  constexpr int kBit = 2 * (kLine % 4);
  const __m512i raw = LoadLine(group + 128 + kLine * 64);
  w[kLine] = Select(Shifted<4 - kBit>(fifth[kLine / 4]), 0x10, Masked(raw, 15));
  w[8 + kLine] = Select(Shifted<3 - kBit>(fifth[kLine / 4]), 0x10, Masked(Shifted<-4>(raw), 15));
}

template <int kI>
inline void UnpackSixBits(const uint8_t* group, __m512i (&w)[16]) {
  const uint8_t* at = group + kI * 192;
  const __m512i r0 = LoadLine(at), r1 = LoadLine(at + 64), b = LoadLine(at + 128);
  w[kI] = Select(Shifted<2>(r0), 0x3c, Masked(b, 3));
  w[4 + kI] = Select(Shifted<-2>(r0), 0x3c, Masked(Shifted<-2>(b), 3));
  w[8 + kI] = Select(r1, 0x0f, Masked(b, 0x30));
  w[12 + kI] = Select(Shifted<-4>(r1), 0x0f, Masked(Shifted<-2>(b), 0x30));
}

// A pair of lines of a Q3_K group with their third bits.
template <int kH>
inline void UnpackThreeBits(const uint8_t* group, __m512i (&w)[16]) {
  const uint8_t* at = group + kH * 192;
  const __m512i third = LoadLine(at), r0 = LoadLine(at + 64), r1 = LoadLine(at + 128);
  w[2 * kH] = Select(third, 4, Masked(r0, 3));
  w[2 * kH + 4] = Select(Shifted<-2>(third), 4, Masked(Shifted<-2>(r0), 3));
  w[2 * kH + 8] = Select(Shifted<-4>(third), 4, Masked(Shifted<-4>(r0), 3));
  w[2 * kH + 12] = Select(Shifted<-5>(third), 4, Masked(Shifted<-6>(r0), 3));
  w[2 * kH + 1] = Select(Shifted<1>(third), 4, Masked(r1, 3));
  w[2 * kH + 5] = Select(Shifted<-1>(third), 4, Masked(Shifted<-2>(r1), 3));
  w[2 * kH + 9] = Select(Shifted<-3>(third), 4, Masked(Shifted<-4>(r1), 3));
  w[2 * kH + 13] = Select(Shifted<2>(third), 4, Masked(Shifted<-6>(r1), 3));
}

// The codes of a group of 64 columns, quad by quad: [16 rows][4 columns] of unsigned bytes.
template <PackKind kKind>
[[gnu::always_inline]] inline void UnpackGroup(const uint8_t* group, __m512i (&w)[16]) {
  if constexpr (kKind == PackKind::kQ2K) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i raw = LoadLine(group + i * 64);
      w[i] = Masked(raw, 3);
      w[4 + i] = Masked(Shifted<-2>(raw), 3);
      w[8 + i] = Masked(Shifted<-4>(raw), 3);
      w[12 + i] = Masked(Shifted<-6>(raw), 3);
    }
  } else if constexpr (kKind == PackKind::kQ3K) {
    UnpackThreeBits<0>(group, w);
    UnpackThreeBits<1>(group, w);
  } else if constexpr (kKind == PackKind::kQ5K) {
    const __m512i fifth[2] = {LoadLine(group), LoadLine(group + 64)};
    UnpackFiveBits<0>(group, fifth, w);
    UnpackFiveBits<1>(group, fifth, w);
    UnpackFiveBits<2>(group, fifth, w);
    UnpackFiveBits<3>(group, fifth, w);
    UnpackFiveBits<4>(group, fifth, w);
    UnpackFiveBits<5>(group, fifth, w);
    UnpackFiveBits<6>(group, fifth, w);
    UnpackFiveBits<7>(group, fifth, w);
  } else if constexpr (kKind == PackKind::kQ6K) {
    UnpackSixBits<0>(group, w);
    UnpackSixBits<1>(group, w);
    UnpackSixBits<2>(group, w);
    UnpackSixBits<3>(group, w);
  } else {
    const __m512i table = _mm512_load_si512(kIq4Table.at);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const __m512i raw = LoadLine(group + i * 64), high = Shifted<-4>(raw);
      constexpr bool kLooksUp = kKind == PackKind::kIq4Xs;
      w[i] = kLooksUp ? _mm512_permutexvar_epi8(raw, table) : Masked(raw, 15);
      w[8 + i] = kLooksUp ? _mm512_permutexvar_epi8(high, table) : Masked(high, 15);
    }
  }
}

// Scales and minima of group kGroup's sub-blocks, a 32-bit lane a row. Minima come in pairs of
// 16-bit values, for products of 16 bits.
template <PackKind kKind>
struct GroupScales {
  static constexpr int kSubs = 64 / SuperLayoutOf(kKind).sub_cols;
  __m512i scale[kSubs], min_pair[kSubs / 2];
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
    constexpr int kSubs = GroupScales<kKind>::kSubs;
#pragma GCC unroll 4
    for (int s = 0; s < kSubs; ++s) {
      const auto* at = reinterpret_cast<const __m128i*>(scales + (group * kSubs + s) * kPanelRows);
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
