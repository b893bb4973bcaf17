// SPDX-License-Identifier: Apache-2.0
// Packing a code at a time, in the words of panels.h. Slow; pack_mxfp4.cc and pack_q8.cc must give
// the same bytes.
#include "cpu/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

// One row of MXFP4 as codes and exponents, whichever way the file stores it.
struct Mxfp4Row {
  std::vector<uint8_t> codes;      // [cols]
  std::vector<uint8_t> exponents;  // [blocks]
};

void ReadMxfp4(const MatView& matrix, int row, Mxfp4Row& out) {
  const int blocks = matrix.cols / kQuantBlock;
  const auto* data = reinterpret_cast<const uint8_t*>(matrix.data + row * matrix.row_bytes);
  const bool planes = matrix.dtype == DType::kMxfp4Planes;
  const auto* scales = reinterpret_cast<const uint8_t*>(matrix.scales);
  if (planes) scales += row * matrix.scale_row_bytes;
  for (int b = 0; b < blocks; ++b) {
    const uint8_t* nibbles = planes ? data + b * 16 : data + b * 17 + 1;
    out.exponents[static_cast<size_t>(b)] = planes ? scales[b] : data[b * 17];
    uint8_t* codes = &out.codes[static_cast<size_t>(b) * kQuantBlock];
    for (int i = 0; i < 16; ++i) {
      codes[planes ? 2 * i : i] = nibbles[i] & 15;
      codes[planes ? 2 * i + 1 : i + 16] = nibbles[i] >> 4;
    }
  }
}

// The four exponents that are folded are those just below the strip's largest; 1 keeps the base a
// normal float. A block of zeros fits anywhere, whatever its exponent says.
void PackMxfp4Row(const MatView& matrix, const Mxfp4Row& from, int row, uint8_t* panel,
                  std::vector<SpilledBlock>& spills) {
  const int cols = matrix.cols, lane = row % kPanelRows, blocks = cols / kQuantBlock;
  const auto is_zero = [&from](int block) {
    const auto begin = from.codes.begin() + block * kQuantBlock;
    return std::all_of(begin, begin + kQuantBlock, [](uint8_t code) { return (code & 7) == 0; });
  };
  for (int c = 0; c < NumStrips(cols); ++c) {
    const int first = c * kStripBlocks, last = std::min(blocks, first + kStripBlocks);
    int top = 0;
    for (int b = first; b < last; ++b) {
      if (!is_zero(b)) top = std::max<int>(top, from.exponents[static_cast<size_t>(b)]);
    }
    const int base = std::max(top - 4, 1);
    panel[c * kPanelRows + lane] = static_cast<uint8_t>(base);
    for (int b = first; b < last; ++b) {
      const int shift = from.exponents[static_cast<size_t>(b)] - 1 - base;
      const bool folds = is_zero(b) || (shift >= 0 && shift <= 3);
      if (!folds) spills.push_back(SpillOf(matrix, row, b));
      uint8_t* shifts = panel + Mxfp4ShiftsAt(cols);
      shifts[b * kPanelRows + lane] =
          static_cast<uint8_t>(shift >= 0 && shift <= 3 ? shift << 4 : 0);
      uint8_t* nibbles = panel + Mxfp4NibblesAt(cols) + b * 256 + lane * 4;
      for (int i = 0; i < kQuantBlock; ++i) {
        const int code = folds ? from.codes[static_cast<size_t>(b * kQuantBlock + i)] : 0;
        nibbles[i / 8 * 64 + i % 4] |= static_cast<uint8_t>(i % 8 < 4 ? code : code << 4);
      }
    }
  }
}

void PackQ8Row(const MatView& matrix, int row, int lane, uint8_t* panel) {
  const auto* data = reinterpret_cast<const uint8_t*>(matrix.data + row * matrix.row_bytes);
  for (int b = 0; b < matrix.cols / kQuantBlock; ++b) {
    std::memcpy(panel + (b * kPanelRows + lane) * 2, data + b * 34, 2);
    uint8_t* codes = panel + Q8CodesAt(matrix.cols) + b * 512 + lane * 4;
    for (int i = 0; i < kQuantBlock; ++i) {
      codes[i / 4 * 64 + i % 4] = static_cast<uint8_t>(data[b * 34 + 2 + i] ^ 0x80);
    }
  }
}

}  // namespace

SpilledBlock SpillOf(const MatView& matrix, int row, int block) {
  const bool planes = matrix.dtype == DType::kMxfp4Planes;
  const auto* data = reinterpret_cast<const uint8_t*>(matrix.data + row * matrix.row_bytes);
  const uint8_t* nibbles = planes ? data + block * 16 : data + block * 17 + 1;
  const int exponent = planes
                           ? static_cast<int>(matrix.scales[row * matrix.scale_row_bytes + block])
                           : data[block * 17];
  SpilledBlock spill{row, block, 0, {}};
  // Half, because the table holds twice the values. Exact: at worst a subnormal float.
  spill.scale = std::ldexp(0.5f, exponent - 127);
  for (int i = 0; i < 16; ++i) {
    spill.w[planes ? 2 * i : i] = kTwiceE2m1[nibbles[i] & 15];
    spill.w[planes ? 2 * i + 1 : i + 16] = kTwiceE2m1[nibbles[i] >> 4];
  }
  return spill;
}

void PackPanelPlainly(const MatView& matrix, int first_row, int count, uint8_t* panel,
                      std::vector<SpilledBlock>& spills) {
  const bool is_q8 = matrix.dtype == DType::kQ8_0;
  const auto blocks = static_cast<size_t>(matrix.cols / kQuantBlock);
  Mxfp4Row scratch{std::vector<uint8_t>(static_cast<size_t>(matrix.cols)),
                   std::vector<uint8_t>(blocks)};
  // Rows past the end of the last panel must be harmless: zero weights, a normal base.
  std::memset(panel, 0, static_cast<size_t>(PanelBytesOf(matrix)));
  if (is_q8) {
    std::memset(panel + Q8CodesAt(matrix.cols), 0x80, blocks * 512);
  } else {
    std::memset(panel, 1, static_cast<size_t>(NumStrips(matrix.cols)) * kPanelRows);
  }
  for (int lane = 0; lane < count; ++lane) {
    const int row = first_row + lane;
    if (is_q8) {
      PackQ8Row(matrix, row, lane, panel);
    } else {
      ReadMxfp4(matrix, row, scratch);
      PackMxfp4Row(matrix, scratch, row, panel, spills);
    }
  }
}

}  // namespace hearth
