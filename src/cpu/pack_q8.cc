// SPDX-License-Identifier: Apache-2.0
// Q8_0 to panels, sixteen rows at once. pack_plain.cc is the same in plain words.
#include <cstring>

#include "base/num.h"
#include "cpu/pack.h"
#include "cpu/pack_format.h"
#include "cpu/pack_lines.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

// False when a factor is suspect.
bool PackQ8Panel(const MatView& matrix, int first_row, uint8_t* panel) {
  const int cols = matrix.cols, blocks = cols / kQuantBlock;
  const int64_t codes_at = Q8CodesAt(cols);
  std::memset(panel + blocks * 32, 0, static_cast<size_t>(codes_at - blocks * 32));
  const uint8_t* rows[kPanelRows];
  for (int lane = 0; lane < kPanelRows; ++lane) {
    rows[lane] =
        reinterpret_cast<const uint8_t*>(matrix.data + (first_row + lane) * matrix.row_bytes);
  }
  const __m128i sign = _mm_set1_epi8(static_cast<char>(0x80));
  bool plausible = true;
  for (int b = 0; b < blocks; ++b) {
    for (int lane = 0; lane < kPanelRows; ++lane) {
      uint16_t factor;
      std::memcpy(&factor, rows[lane] + b * 34, 2);
      std::memcpy(panel + (b * kPanelRows + lane) * 2, &factor, 2);
      plausible &= (factor & kF16Exponent) != kF16Exponent;
    }
    uint8_t* out = panel + codes_at + b * 512;
    for (int half = 0; half < 2; ++half) {
      for (int g = 0; g < 4; ++g) {
        __m128i q[4];
        for (int i = 0; i < 4; ++i) q[i] = LoadLine(rows[4 * g + i] + b * 34 + 2 + half * 16);
        Transpose(q);
        for (int i = 0; i < 4; ++i) {
          StoreLine(out + (4 * half + i) * 64 + g * 16, _mm_xor_si128(q[i], sign));
        }
      }
    }
  }
  return plausible;
}

bool PackPanel(const MatView& matrix, int first_row, int count, uint8_t* panel,
               std::vector<SpilledBlock>& spills) {
  if (count == kPanelRows) return PackQ8Panel(matrix, first_row, panel);
  PackPanelPlainly(matrix, first_row, count, panel, spills);
  bool plausible = true;
  for (int i = 0; i < count; ++i) {
    const auto* data =
        reinterpret_cast<const uint8_t*>(matrix.data + (first_row + i) * matrix.row_bytes);
    for (int b = 0; b < matrix.cols / kQuantBlock; ++b) {
      plausible &= ((data[b * 34 + 1] << 8) & kF16Exponent) != kF16Exponent;
    }
  }
  return plausible;
}

bool CheckPanel(const PackedMatrix& packed, const uint8_t* panel) {
  return FiniteF16s(Q8Scales(panel), packed.cols / kQuantBlock * kPanelRows);
}

void Unpack(const PackedMatrix& packed, int row, float* out) {
  const uint8_t* panel = packed.data + row / kPanelRows * packed.panel_bytes;
  const int lane = row % kPanelRows;
  for (int i = 0; i < packed.cols; ++i) {
    const int b = i / kQuantBlock;
    out[i] = F32FromF16(Q8Scales(panel)[b * kPanelRows + lane]) *
             static_cast<float>(Q8Code(panel, packed.cols, b, lane, i % kQuantBlock));
  }
}

}  // namespace

const PackFormat kQ8Format = {
    .name = "Q8_0",
    .unit = kQuantBlock,
    .strip = kStrip,
    .panel_bytes = [](DType, int cols) { return Q8PanelBytes(cols); },
    .pack = PackPanel,
    .check = CheckPanel,
    .unpack_row = Unpack,
};

}  // namespace hearth
