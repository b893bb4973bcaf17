// SPDX-License-Identifier: Apache-2.0
// Panels of K-quants and IQ4_XS: 16 rows by 256 columns make a unit, whose codes share integer
// scales per sub-block of 16 or 32 columns and an f16 factor. Units of a panel follow each other.
// Internal linkage throughout: kernel files compiled for newer processors must not share copies.
#pragma once
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/panels.h"
namespace hearth {

// A unit, every part from a 64-byte line on:
//   factors  f16 d [16 rows], then f16 dmin [16 rows] (zeros where the format has no minimum)
//   scales   Q4_K, Q5_K: three lines of 32-bit words, one a row (SixBits takes them apart);
//            others: a byte [sub-block][row]: Q2_K scale and minimum as in the file, else signed
//   codes    four groups of 64 columns. A quad is four columns; in a line of 64 bytes each row has
//            four bytes, one a column of the quad, and in each byte bits of several quads:
//     Q4_K, IQ4_XS  8 lines: line l has quad l in the low nibbles, quad 8 + l in the high ones
//     Q5_K          2 lines of fifth bits, then as Q4_K: in fifth-bit line h, bit 2i belongs to
//     quad
//                   4h + i and bit 2i + 1 to quad 8 + 4h + i
//     Q6_K          4 times 3 lines, i = 0..3: r0, r1, b of quads i, 4 + i, 8 + i, 12 + i, one of
//                   each sub-block. The first has its upper four bits in r0's low nibble and its
//                   lower two in bits 0-1 of b; the second likewise in the high nibble and bits
//                   2-3. The third has its lower four bits in r1's low nibble and its upper two in
//                   bits 4-5 of b; the fourth likewise in the high nibble and bits 6-7.
//     Q2_K          4 lines: line i has quads i, 4 + i, 8 + i, 12 + i in bits 0-1, 2-3, 4-5, 6-7
//     Q3_K          2 times 3 lines, h = 0, 1: third bits, then lines i = 2h and 2h + 1 as in Q2_K.
//                   Third bits of line 2h are bits 2, 4, 6, 7; of line 2h + 1 bits 1, 3, 5, 0.
struct SuperLayout {
  int scales_at, codes_at, group_bytes, unit_bytes;
  int sub_cols;  // columns of a sub-block
  int offset;    // what is taken from a code to get the signed integer; IQ4_XS has a table instead
  bool has_min;
};
static constexpr SuperLayout SuperLayoutOf(PackKind kind) {
  switch (kind) {
    case PackKind::kQ2K:
      return {64, 320, 256, 320 + 4 * 256, 16, 0, true};
    case PackKind::kQ3K:
      return {64, 320, 384, 320 + 4 * 384, 16, 4, false};
    case PackKind::kQ4K:
      return {64, 256, 512, 256 + 4 * 512, 32, 0, true};
    case PackKind::kQ5K:
      return {64, 256, 640, 256 + 4 * 640, 32, 0, true};
    case PackKind::kQ6K:
      return {64, 320, 768, 320 + 4 * 768, 16, 32, false};
    default:  // kIq4Xs
      return {64, 192, 512, 192 + 4 * 512, 32, 0, false};
  }
}

// Q4_K and Q5_K: words 0, 1, 2 of a row have in 24 bits the scales of sub-blocks 2p and 2p + 1 and
// then their minima, six bits each; the top bytes of the three words are those of p = 3.
static inline uint32_t SixBits(const uint32_t* words, int pair) {
  return pair < 3 ? words[pair] : words[0] >> 24 | (words[1] >> 24) << 8 | (words[2] >> 24) << 16;
}

// Where a quad's codes lie in its group, as up to two runs of bits.
struct CodeBits {
  int line, shift;  // which line of the group, and the lowest bit in each byte
  int from, bits;   // which bits of the code: [from, from + bits)
};
struct QuadPlace {
  CodeBits part[2];  // the second has bits 0 where there is only one
};
static constexpr QuadPlace PlaceOf(PackKind kind, int quad) {
  constexpr int kThird[2][4] = {{2, 4, 6, 7}, {1, 3, 5, 0}};
  const int sub = quad / 4, i = quad % 4, line = quad % 8, high = quad / 8;
  switch (kind) {
    case PackKind::kQ2K:
      return {{{i, 2 * sub, 0, 2}, {0, 0, 0, 0}}};
    case PackKind::kQ3K:
      return {{{3 * (i / 2) + 1 + i % 2, 2 * sub, 0, 2}, {3 * (i / 2), kThird[i % 2][sub], 2, 1}}};
    case PackKind::kQ5K:
      return {{{2 + line, 4 * high, 0, 4}, {line / 4, 2 * (line % 4) + high, 4, 1}}};
    case PackKind::kQ6K:
      return {{{3 * i + sub / 2, sub % 2 * 4, sub < 2 ? 2 : 0, 4},
               {3 * i + 2, 2 * sub, sub < 2 ? 0 : 4, 2}}};
    default:  // kQ4K, kIq4Xs
      return {{{line, 4 * high, 0, 4}, {0, 0, 0, 0}}};
  }
}

// One code of a unit, as it stands in the file: the definition of the layout.
static inline int SuperCode(PackKind kind, const uint8_t* unit, int lane, int column) {
  const SuperLayout layout = SuperLayoutOf(kind);
  const uint8_t* group = unit + layout.codes_at + column / 64 * layout.group_bytes;
  const QuadPlace place = PlaceOf(kind, column % 64 / 4);
  int code = 0;
  for (const CodeBits& part : place.part) {
    const int byte = group[part.line * 64 + lane * 4 + column % 4];
    code |= (byte >> part.shift & ((1 << part.bits) - 1)) << part.from;
  }
  return code;
}

// The integer that a code stands for.
static inline int SuperValue(PackKind kind, int code) {
  return kind == PackKind::kIq4Xs ? kIq4Codes[code] : code - SuperLayoutOf(kind).offset;
}

struct SubScale {
  int scale, min;
};
static inline SubScale SubScaleOf(PackKind kind, const uint8_t* unit, int lane, int sub) {
  const uint8_t* scales = unit + SuperLayoutOf(kind).scales_at;
  if (kind == PackKind::kQ4K || kind == PackKind::kQ5K) {
    uint32_t words[3];
    for (int i = 0; i < 3; ++i) __builtin_memcpy(&words[i], scales + i * 64 + lane * 4, 4);
    const uint32_t six = SixBits(words, sub / 2) >> (sub % 2 * 6);
    return {static_cast<int>(six & 63), static_cast<int>(six >> 12 & 63)};
  }
  const uint8_t byte = scales[sub * kPanelRows + lane];
  if (kind == PackKind::kQ2K) return {byte & 15, byte >> 4};
  return {static_cast<int8_t>(byte), 0};
}

static inline const uint16_t* SuperFactors(const uint8_t* unit) {  // d, then dmin
  return reinterpret_cast<const uint16_t*>(unit);
}

}  // namespace hearth
