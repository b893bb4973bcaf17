// SPDX-License-Identifier: Apache-2.0
// What lies where in a panel of Q4_0, Q4_1, Q5_0, Q5_1 or IQ4_NL: formats with one factor, and
// perhaps one minimum, per block of 32 codes of four or five bits. Internal linkage throughout,
// like panels.h.
#pragma once
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/panels.h"
namespace hearth {

// A panel is a row of units, each two blocks of 16 rows, as wide as in the file. Every part starts
// on a 64-byte line, so that a panel is read front to back as one stream:
//   factors [2 blocks][16 rows]  f16
//   minima  [2 blocks][16 rows]  f16, only of Q4_1 and Q5_1
//   fifth   [2 lines][16 rows][4 bytes], only of Q5_0 and Q5_1: in line j, bit k of byte i is the
//           fifth bit of column 16j + 4k + i of the first block, bit 4 + k that of the second
//   codes   [8 lines][16 rows][4 bytes]: in line l, byte i has column 4l + i of the first block in
//           its low half and of the second in its high half
// Where the number of blocks is odd, the last unit's second block has zero factors and codes.
static constexpr int kUnitCols = 2 * kQuantBlock;
static constexpr int kUnitLines = 8;
static_assert(kStrip % kUnitCols == 0);  // both blocks of a unit share an activation scale

struct BlockTraits {
  bool has_min;    // added to every weight of the block
  bool has_fifth;  // codes of five bits
  bool has_table;  // nibbles stand for kIq4Codes
  int offset;      // from an integer weight to the unsigned byte that kernels multiply
};
static constexpr BlockTraits BlockTraitsOf(PackKind kind) {
  switch (kind) {
    case PackKind::kQ4_1:
      return {true, false, false, 0};
    case PackKind::kQ5_0:
      return {false, true, false, 16};
    case PackKind::kQ5_1:
      return {true, true, false, 0};
    case PackKind::kIq4Nl:
      return {false, false, true, 127};
    default:  // Q4_0
      return {false, false, false, 8};
  }
}

static constexpr int kMinimaAt = 64;
static constexpr int FifthAt(BlockTraits traits) { return traits.has_min ? 128 : 64; }
static constexpr int CodesAt(BlockTraits traits) {
  return FifthAt(traits) + (traits.has_fifth ? 128 : 0);
}
static constexpr int UnitBytes(BlockTraits traits) { return CodesAt(traits) + kUnitLines * 64; }
static constexpr int NumUnits(int cols) { return (cols + kUnitCols - 1) / kUnitCols; }

static inline const uint16_t* FactorsOf(const uint8_t* unit) {
  return reinterpret_cast<const uint16_t*>(unit);
}
static inline const uint16_t* MinimaOf(const uint8_t* unit) {
  return reinterpret_cast<const uint16_t*>(unit + kMinimaAt);
}

// The integer that one weight's factor multiplies; `block` is 0 or 1, `column` counts in it.
static inline int BlockWeight(BlockTraits traits, const uint8_t* unit, int block, int lane,
                              int column) {
  const int at = lane * 4 + column % 4;
  const int byte = unit[CodesAt(traits) + column / 4 * 64 + at];
  int code = block == 0 ? byte & 15 : byte >> 4;
  if (traits.has_table) return kIq4Codes[code];
  if (traits.has_fifth) {
    const int bits = unit[FifthAt(traits) + column / 16 * 64 + at];
    code |= (bits >> (4 * block + column % 16 / 4) & 1) << 4;
  }
  return code - traits.offset;
}

}  // namespace hearth
