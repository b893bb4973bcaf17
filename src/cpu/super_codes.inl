// SPDX-License-Identifier: Apache-2.0
// Codes of K-quants and IQ4_XS to bytes, for vectors of any width: the file that includes this
// inside its unnamed namespace brings Vec, LoadLine, Masked, Select, Shifted and LookUpIq4.

// What is to be taken from an unpacked code to get the integer it stands for.
template <PackKind kKind>
constexpr int kCodeOffset = kKind == PackKind::kIq4Xs ? 128 : SuperLayoutOf(kKind).offset;

// A group of 64 columns has two or four sub-blocks; step i takes out quad i of each.
template <PackKind kKind>
constexpr int kSubs = 64 / SuperLayoutOf(kKind).sub_cols;
template <PackKind kKind>
constexpr int kSteps = 16 / kSubs<kKind>;

// Codes may stay where they lie in their bytes, so many bits up: that saves shifts, and a shift of
// the finished sum brings it back.
template <PackKind kKind>
constexpr int InPlaceShift(int sub) {
  constexpr int kTwo[4] = {0, 2, 4, 6}, kThree[4] = {0, 2, 4, 5};
  if (kKind == PackKind::kQ2K) return kTwo[sub];
  if (kKind == PackKind::kQ3K) return kThree[sub];
  if (kKind == PackKind::kQ4K) return 4 * sub;
  return kKind == PackKind::kQ6K ? sub % 2 * 2 : 0;
}

template <int kStep, bool kInPlace>
[[gnu::always_inline]] inline void StepQ2K(const uint8_t* group, Vec (&w)[4]) {
  const Vec raw = LoadLine(group + kStep * 64);
  w[0] = Masked(raw, 3);
  w[1] = kInPlace ? Masked(raw, 0x0c) : Masked(Shifted<-2>(raw), 3);
  w[2] = kInPlace ? Masked(raw, 0x30) : Masked(Shifted<-4>(raw), 3);
  w[3] = kInPlace ? Masked(raw, 0xc0) : Masked(Shifted<-6>(raw), 3);
}

template <int kStep, bool kInPlace>
[[gnu::always_inline]] inline void StepQ3K(const uint8_t* group, Vec (&w)[4]) {
  constexpr bool kOdd = kStep % 2 != 0;
  const uint8_t* at = group + kStep / 2 * 192;
  const Vec raw = LoadLine(at + 64 + kStep % 2 * 64), line = LoadLine(at);
  const Vec third = Shifted<(kOdd ? 1 : 0)>(line);  // of sub-blocks 0 to 2: bits 2, 4, 6
  w[0] = Select(third, 4, Masked(raw, 3));
  if constexpr (kInPlace) {
    w[1] = Select(third, 0x10, Masked(raw, 0x0c));
    w[2] = Select(third, 0x40, Masked(raw, 0x30));
    w[3] = Select(Shifted<(kOdd ? 7 : 0)>(line), 0x80, Masked(Shifted<-1>(raw), 0x60));
  } else {
    w[1] = Select(Shifted<-2>(third), 4, Masked(Shifted<-2>(raw), 3));
    w[2] = Select(Shifted<-4>(third), 4, Masked(Shifted<-4>(raw), 3));
    w[3] = Select(Shifted<(kOdd ? 2 : -5)>(line), 4, Masked(Shifted<-6>(raw), 3));
  }
}

template <int kStep, bool kInPlace>
[[gnu::always_inline]] inline void StepQ6K(const uint8_t* group, Vec (&w)[4]) {
  const uint8_t* at = group + kStep * 192;
  const Vec r0 = LoadLine(at), r1 = LoadLine(at + 64), b = LoadLine(at + 128);
  w[0] = Select(Shifted<2>(r0), 0x3c, Masked(b, 3));
  w[2] = Select(r1, 0x0f, Masked(b, 0x30));
  if constexpr (kInPlace) {
    w[1] = Select(r0, 0xf0, Masked(b, 0x0c));
    w[3] = Select(Shifted<-2>(r1), 0x3c, Masked(b, 0xc0));
  } else {
    w[1] = Select(Shifted<-2>(r0), 0x3c, Masked(Shifted<-2>(b), 3));
    w[3] = Select(Shifted<-4>(r1), 0x0f, Masked(Shifted<-2>(b), 0x30));
  }
}

template <PackKind kKind, int kStep, bool kInPlace>
[[gnu::always_inline]] inline void StepNibbles(const uint8_t* group, Vec (&w)[2]) {
  constexpr int kFirst = kKind == PackKind::kQ5K ? 128 : 0;
  const Vec raw = LoadLine(group + kFirst + kStep * 64);
  if constexpr (kKind == PackKind::kIq4Xs) {
    w[0] = LookUpIq4(raw);
    w[1] = LookUpIq4(Shifted<-4>(raw));
  } else if constexpr (kKind == PackKind::kQ5K) {
    constexpr int kBit = 2 * (kStep % 4);
    const Vec fifth = LoadLine(group + kStep / 4 * 64);
    w[0] = Select(Shifted<4 - kBit>(fifth), 0x10, Masked(raw, 15));
    w[1] = Select(Shifted<3 - kBit>(fifth), 0x10, Masked(Shifted<-4>(raw), 15));
  } else {
    w[0] = Masked(raw, 15);
    w[1] = kInPlace ? Masked(raw, 0xf0) : Masked(Shifted<-4>(raw), 15);
  }
}

// Quad kStep of each sub-block of a group: [rows][4 columns] of unsigned bytes.
template <PackKind kKind, int kStep, bool kInPlace>
[[gnu::always_inline]] inline void UnpackStep(const uint8_t* group, Vec (&w)[kSubs<kKind>]) {
  if constexpr (kKind == PackKind::kQ2K) {
    StepQ2K<kStep, kInPlace>(group, w);
  } else if constexpr (kKind == PackKind::kQ3K) {
    StepQ3K<kStep, kInPlace>(group, w);
  } else if constexpr (kKind == PackKind::kQ6K) {
    StepQ6K<kStep, kInPlace>(group, w);
  } else {
    StepNibbles<kKind, kStep, kInPlace>(group, w);
  }
}

// All sixteen quads of a group in the order of their columns.
template <PackKind kKind, int kStep = 0>
[[gnu::always_inline]] inline void UnpackGroup(const uint8_t* group, Vec (&w)[16]) {
  if constexpr (kStep < kSteps<kKind>) {
    Vec now[kSubs<kKind>];
    UnpackStep<kKind, kStep, false>(group, now);
#pragma GCC unroll 4
    for (int s = 0; s < kSubs<kKind>; ++s) w[s * kSteps<kKind> + kStep] = now[s];
    UnpackGroup<kKind, kStep + 1>(group, w);
  }
}
