// SPDX-License-Identifier: Apache-2.0
// Codes of K-quants and IQ4_XS to bytes, for vectors of any width: the file that includes this
// inside its unnamed namespace brings Vec, LoadLine, Masked, Select, Shifted and LookUpIq4.

// What is to be taken from an unpacked code to get the integer it stands for.
template <PackKind kKind>
constexpr int kCodeOffset = kKind == PackKind::kIq4Xs ? 128 : SuperLayoutOf(kKind).offset;

// Line kLine of a Q5_K group with its fifth bits.
template <int kLine>
inline void UnpackFiveBits(const uint8_t* group, const Vec (&fifth)[2], Vec (&w)[16]) {
  constexpr int kBit = 2 * (kLine % 4);
  const Vec raw = LoadLine(group + 128 + kLine * 64);
  w[kLine] = Select(Shifted<4 - kBit>(fifth[kLine / 4]), 0x10, Masked(raw, 15));
  w[8 + kLine] = Select(Shifted<3 - kBit>(fifth[kLine / 4]), 0x10, Masked(Shifted<-4>(raw), 15));
}

template <int kI>
inline void UnpackSixBits(const uint8_t* group, Vec (&w)[16]) {
  const uint8_t* at = group + kI * 192;
  const Vec r0 = LoadLine(at), r1 = LoadLine(at + 64), b = LoadLine(at + 128);
  w[kI] = Select(Shifted<2>(r0), 0x3c, Masked(b, 3));
  w[4 + kI] = Select(Shifted<-2>(r0), 0x3c, Masked(Shifted<-2>(b), 3));
  w[8 + kI] = Select(r1, 0x0f, Masked(b, 0x30));
  w[12 + kI] = Select(Shifted<-4>(r1), 0x0f, Masked(Shifted<-2>(b), 0x30));
}

// A pair of lines of a Q3_K group with their third bits.
template <int kH>
inline void UnpackThreeBits(const uint8_t* group, Vec (&w)[16]) {
  const uint8_t* at = group + kH * 192;
  const Vec third = LoadLine(at), r0 = LoadLine(at + 64), r1 = LoadLine(at + 128);
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
[[gnu::always_inline]] inline void UnpackGroup(const uint8_t* group, Vec (&w)[16]) {
  if constexpr (kKind == PackKind::kQ2K) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vec raw = LoadLine(group + i * 64);
      w[i] = Masked(raw, 3);
      w[4 + i] = Masked(Shifted<-2>(raw), 3);
      w[8 + i] = Masked(Shifted<-4>(raw), 3);
      w[12 + i] = Masked(Shifted<-6>(raw), 3);
    }
  } else if constexpr (kKind == PackKind::kQ3K) {
    UnpackThreeBits<0>(group, w);
    UnpackThreeBits<1>(group, w);
  } else if constexpr (kKind == PackKind::kQ5K) {
    const Vec fifth[2] = {LoadLine(group), LoadLine(group + 64)};
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
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const Vec raw = LoadLine(group + i * 64), high = Shifted<-4>(raw);
      constexpr bool kLooksUp = kKind == PackKind::kIq4Xs;
      w[i] = kLooksUp ? LookUpIq4(raw) : Masked(raw, 15);
      w[8 + i] = kLooksUp ? LookUpIq4(high) : Masked(high, 15);
    }
  }
}
