// SPDX-License-Identifier: Apache-2.0
// What lies where in a packed panel of 16 rows. One layout feeds scalar, AVX2, AVX-512 and AMX.
// Internal linkage throughout: kernel files compiled for newer processors must not share copies.
#pragma once
#include <cstdint>

#include "cpu/kernels.h"
namespace hearth {

// MXFP4, `strips` = ceil(cols / 576), `blocks` = cols / 32, every part from a 64-byte line on:
//   bases   [strips][16]  u8: the strip's power of two, 2^(base - 127), never subnormal
//   shifts  [blocks][16]  u8: how far the block lies above it, 0..3, times 16 (ready to index)
//   nibbles [blocks][4 lines][16 rows][4 bytes]: in line c, byte i of a row has column 8c + i in
//           its low half and 8c + 4 + i in its high half
// Q8:
//   scales  [blocks][16]  f16
//   codes   [blocks][8 lines][16 rows][4 bytes]: column 4c + i, stored plus 128
// F32, F16, BF16, nothing but values:
//   values  [blocks][16 rows][32 columns]; BF16 in pairs of column i and column 16 + i, so that the
//           low and the high halves of sixteen words are columns in order

static constexpr int kStripBlocks = kStrip / kQuantBlock;
// 127 * 256: the largest 16-bit activation whose high half fits a signed byte.
constexpr float kActMax = 32512.0f;
constexpr float kByteMax = 127.0f;  // of activations in one plane
constexpr int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
// What IQ4_NL and IQ4_XS codes stand for: tensor/iq_tables.h's, without its external linkage.
constexpr int8_t kIq4Codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

static constexpr int64_t LineUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static constexpr int NumStrips(int cols) { return (cols + kStrip - 1) / kStrip; }
static constexpr int NumPanels(int rows) { return (rows + kPanelRows - 1) / kPanelRows; }

// The panels of a matrix that lie on one memory node, as a matrix whose other panels do not exist.
static inline PackedMatrix PartOn(const PackedMatrix& matrix, int node) {
  PackedMatrix part = matrix;
  if (matrix.nodes != nullptr) part.data = matrix.nodes[node];
  return part;
}

static constexpr int64_t Mxfp4ShiftsAt(int cols) {
  return LineUp(int64_t{NumStrips(cols)} * kPanelRows);
}
static constexpr int64_t Mxfp4NibblesAt(int cols) {
  return Mxfp4ShiftsAt(cols) + LineUp(int64_t{cols} / kQuantBlock * kPanelRows);
}
static constexpr int64_t Mxfp4PanelBytes(int cols) {
  return Mxfp4NibblesAt(cols) + int64_t{cols} / kQuantBlock * 256;
}
static constexpr int64_t Q8CodesAt(int cols) { return LineUp(int64_t{cols} / kQuantBlock * 32); }
static constexpr int64_t Q8PanelBytes(int cols) {
  return Q8CodesAt(cols) + int64_t{cols} / kQuantBlock * 512;
}

static inline const uint8_t* Mxfp4Bases(const uint8_t* panel) { return panel; }
static inline const uint8_t* Mxfp4Shifts(const uint8_t* panel, int cols) {
  return panel + Mxfp4ShiftsAt(cols);
}
static inline const uint8_t* Mxfp4Nibbles(const uint8_t* panel, int cols) {
  return panel + Mxfp4NibblesAt(cols);
}
// The E2M1 code of one value.
static inline int Mxfp4Code(const uint8_t* panel, int cols, int block, int lane, int column) {
  const uint8_t byte =
      Mxfp4Nibbles(panel, cols)[block * 256 + column / 8 * 64 + lane * 4 + column % 4];
  return column % 8 < 4 ? byte & 15 : byte >> 4;
}
static inline const uint16_t* Q8Scales(const uint8_t* panel) {
  return reinterpret_cast<const uint16_t*>(panel);
}
static inline int Q8Code(const uint8_t* panel, int cols, int block, int lane, int column) {
  const uint8_t* codes = panel + Q8CodesAt(cols);
  return codes[block * 512 + column / 4 * 64 + lane * 4 + column % 4] - 128;
}

static constexpr int64_t FloatPanelBytes(int cols, int value_bytes) {
  return int64_t{cols} * kPanelRows * value_bytes;
}
// The place of one value, counted in values from the panel's start.
static constexpr int64_t FloatPlace(int lane, int column) {
  return (int64_t{column / kQuantBlock} * kPanelRows + lane) * kQuantBlock + column % kQuantBlock;
}
static constexpr int64_t Bf16Place(int lane, int column) {
  return FloatPlace(lane, column / kQuantBlock * kQuantBlock) + column % 16 * 2 + column / 16 % 2;
}

}  // namespace hearth
