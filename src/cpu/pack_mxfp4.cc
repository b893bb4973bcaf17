// SPDX-License-Identifier: Apache-2.0
// MXFP4 to panels, sixteen rows at once. pack_plain.cc is the same in plain words.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/pack.h"
#include "cpu/pack_format.h"
#include "cpu/pack_lines.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

// A scale from here on may make a block infinite, 255 makes it NaN (tensor/check_blocks.cc).
constexpr uint8_t kSuspectExponent = 253;

// GGUF's order, in byte j column j low and j + 16 high, to that of the panel's four lines.
void LinesOfBlock(const __m128i* q, __m128i* lines) {
  const __m128i low = _mm_set1_epi8(0x0f);
  const auto lows = [low](__m128i a, __m128i b) {
    return _mm_or_si128(_mm_and_si128(a, low), _mm_slli_epi16(_mm_and_si128(b, low), 4));
  };
  const auto highs = [low](__m128i a, __m128i b) {
    return _mm_or_si128(_mm_and_si128(_mm_srli_epi16(a, 4), low), _mm_andnot_si128(low, b));
  };
  lines[0] = lows(q[0], q[1]);
  lines[1] = lows(q[2], q[3]);
  lines[2] = highs(q[0], q[1]);
  lines[3] = highs(q[2], q[3]);
}

// Columns in nibble order 0 1 2 3 4 5 6 7 become 0 4 1 5 2 6 3 7: first bytes, then nibbles swap.
__m128i LineOfPlane(__m128i x) {
  const __m128i bytes = _mm_set1_epi32(0x0000ff00), nibbles = _mm_set1_epi32(0x00f000f0);
  const auto swap = [](__m128i v, __m128i mask, int by) {
    const __m128i differs = _mm_and_si128(_mm_xor_si128(v, _mm_srli_epi32(v, by)), mask);
    return _mm_xor_si128(v, _mm_or_si128(differs, _mm_slli_epi32(differs, by)));
  };
  return swap(swap(x, bytes, 8), nibbles, 4);
}

// Sixteen rows of an MXFP4 matrix on their way into one panel.
class Mxfp4Panel {
 public:
  Mxfp4Panel(const MatView& matrix, int first_row, uint8_t* panel)
      : matrix_(matrix), first_row_(first_row), panel_(panel) {
    const bool planes = matrix.dtype == DType::kMxfp4Planes;
    for (int lane = 0; lane < kPanelRows; ++lane) {
      const int64_t row = first_row + lane;
      const auto* data = reinterpret_cast<const uint8_t*>(matrix.data + row * matrix.row_bytes);
      nibbles_[lane] = planes ? data : data + 1;
      exponents_[lane] =
          planes ? reinterpret_cast<const uint8_t*>(matrix.scales + row * matrix.scale_row_bytes)
                 : data;
    }
    nibble_step_ = planes ? 16 : 17;
    exponent_step_ = planes ? 1 : 17;
  }

  // False when an exponent is suspect.
  bool Pack(std::vector<SpilledBlock>& spills) {
    const int cols = matrix_.cols, blocks = cols / kQuantBlock, strips = NumStrips(cols);
    const int64_t shifts_at = Mxfp4ShiftsAt(cols), nibbles_at = Mxfp4NibblesAt(cols);
    std::memset(panel_ + strips * kPanelRows, 0,
                static_cast<size_t>(shifts_at - strips * kPanelRows));
    std::memset(panel_ + shifts_at + blocks * kPanelRows, 0,
                static_cast<size_t>(nibbles_at - shifts_at - blocks * kPanelRows));
    const size_t spilled_before = spills.size();
    for (int c = 0; c < strips; ++c) {
      const int first = c * kStripBlocks, last = std::min(blocks, first + kStripBlocks);
      for (int b = first; b < last; ++b) CopyBlock(b, panel_ + nibbles_at + b * 256, b - first);
      FoldStrip(c, first, last, spills);
    }
    // Lanes of a strip came together; the order is by row, then by block.
    std::sort(spills.begin() + static_cast<std::ptrdiff_t>(spilled_before), spills.end(),
              [](const SpilledBlock& a, const SpilledBlock& b) {
                return a.row != b.row ? a.row < b.row : a.block < b.block;
              });
    const __m128i limit = _mm_set1_epi8(static_cast<char>(kSuspectExponent));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(largest_, limit), largest_)) == 0;
  }

 private:
  // Nibbles to their place; exponents and who is all zeros into `block` of the strip's tables.
  void CopyBlock(int b, uint8_t* out, int block) {
    const bool planes = nibble_step_ == 16;
    const __m128i magnitude = _mm_set1_epi8(0x77), zero = _mm_setzero_si128();
    __m128i zeros[4];
    for (int g = 0; g < 4; ++g) {
      __m128i q[4], lines[4];
      for (int i = 0; i < 4; ++i) q[i] = LoadLine(nibbles_[4 * g + i] + b * nibble_step_);
      Transpose(q);
      const __m128i any = _mm_or_si128(_mm_or_si128(q[0], q[1]), _mm_or_si128(q[2], q[3]));
      zeros[g] = _mm_cmpeq_epi32(_mm_and_si128(any, magnitude), zero);
      if (planes) {
        for (int i = 0; i < 4; ++i) lines[i] = LineOfPlane(q[i]);
      } else {
        LinesOfBlock(q, lines);
      }
      for (int c = 0; c < 4; ++c) StoreLine(out + c * 64 + g * 16, lines[c]);
    }
    is_zero_[block] =
        _mm_packs_epi16(_mm_packs_epi32(zeros[0], zeros[1]), _mm_packs_epi32(zeros[2], zeros[3]));
    alignas(16) uint8_t sixteen[kPanelRows];
    for (int lane = 0; lane < kPanelRows; ++lane) {
      sixteen[lane] = exponents_[lane][b * exponent_step_];
    }
    exponent_[block] = LoadLine(sixteen);
  }

  // Sixteen rows' base and shifts, in bytes. base + 1 is at most 252, so an exponent below it wraps
  // to 4 or more and cannot pass for a shift.
  void FoldStrip(int strip, int first, int last, std::vector<SpilledBlock>& spills) {
    __m128i top = _mm_setzero_si128();
    for (int i = 0; i < last - first; ++i) {
      top = _mm_max_epu8(top, _mm_andnot_si128(is_zero_[i], exponent_[i]));
      largest_ = _mm_max_epu8(largest_, exponent_[i]);
    }
    const __m128i one = _mm_set1_epi8(1), three = _mm_set1_epi8(3);
    const __m128i base = _mm_max_epu8(_mm_subs_epu8(top, _mm_set1_epi8(4)), one);
    StoreLine(panel_ + strip * kPanelRows, base);
    uint8_t* shifts = panel_ + Mxfp4ShiftsAt(matrix_.cols);
    for (int i = 0; i < last - first; ++i) {
      const __m128i above = _mm_sub_epi8(exponent_[i], _mm_add_epi8(base, one));
      const __m128i fits = _mm_cmpeq_epi8(_mm_min_epu8(above, three), above);
      StoreLine(shifts + (first + i) * kPanelRows, _mm_slli_epi16(_mm_and_si128(above, fits), 4));
      const int folds = _mm_movemask_epi8(_mm_or_si128(fits, is_zero_[i]));
      if (folds != 0xffff) SpillFrom(first + i, folds, spills);
    }
  }

  void SpillFrom(int b, int folds, std::vector<SpilledBlock>& spills) {
    uint8_t* out = panel_ + Mxfp4NibblesAt(matrix_.cols) + b * 256;
    for (int lane = 0; lane < kPanelRows; ++lane) {
      if ((folds >> lane & 1) != 0) continue;
      spills.push_back(SpillOf(matrix_, first_row_ + lane, b));
      for (int line = 0; line < 4; ++line) std::memset(out + line * 64 + lane * 4, 0, 4);
    }
  }

  const MatView& matrix_;
  const int first_row_;
  uint8_t* const panel_;
  const uint8_t *nibbles_[kPanelRows], *exponents_[kPanelRows];
  int nibble_step_, exponent_step_;
  __m128i exponent_[kStripBlocks], is_zero_[kStripBlocks];
  __m128i largest_ = _mm_setzero_si128();
};

// For the rows of a panel that is not full.
bool PlausibleRow(const MatView& matrix, int row) {
  const auto* data = reinterpret_cast<const uint8_t*>(matrix.data + row * matrix.row_bytes);
  bool plausible = true;
  for (int b = 0; b < matrix.cols / kQuantBlock; ++b) {
    const uint8_t scale =
        matrix.dtype == DType::kMxfp4
            ? data[b * 17]
            : static_cast<uint8_t>(matrix.scales[row * matrix.scale_row_bytes + b]);
    plausible &= scale < kSuspectExponent;
  }
  return plausible;
}

bool PackPanel(const MatView& matrix, int first_row, int count, uint8_t* panel,
               std::vector<SpilledBlock>& spills) {
  if (count == kPanelRows) return Mxfp4Panel(matrix, first_row, panel).Pack(spills);
  PackPanelPlainly(matrix, first_row, count, panel, spills);
  bool plausible = true;
  for (int i = 0; i < count; ++i) plausible &= PlausibleRow(matrix, first_row + i);
  return plausible;
}

bool CheckPanel(const PackedMatrix& packed, const uint8_t* panel) {
  // Gathered without a branch, so that the compiler can use whole vectors.
  uint8_t wrong = 0;
  const uint8_t *bases = Mxfp4Bases(panel), *shifts = Mxfp4Shifts(panel, packed.cols);
  for (int i = 0; i < NumStrips(packed.cols) * kPanelRows; ++i) {
    wrong |= static_cast<uint8_t>(bases[i] < 1 || bases[i] >= kSuspectExponent);
  }
  const int num_shifts = packed.cols / kQuantBlock * kPanelRows;
  for (int i = 0; i < num_shifts; ++i) wrong |= shifts[i] & 0xcf;
  return wrong == 0;
}

void Unpack(const PackedMatrix& packed, int row, float* out) {
  const uint8_t* panel = packed.data + row / kPanelRows * packed.panel_bytes;
  const int lane = row % kPanelRows, cols = packed.cols;
  for (int i = 0; i < cols; ++i) {
    const int b = i / kQuantBlock;
    const int shift = Mxfp4Shifts(panel, cols)[b * kPanelRows + lane] >> 4;
    const int code = Mxfp4Code(panel, cols, b, lane, i % kQuantBlock);
    const int base = Mxfp4Bases(panel)[i / kStrip * kPanelRows + lane];
    out[i] = std::ldexp(static_cast<float>(kTwiceE2m1[code] * (1 << shift)), base - 127);
  }
  for (int s = 0; s < packed.num_spills; ++s) {
    const SpilledBlock& spill = packed.spills[s];
    if (spill.row != row) continue;
    for (int i = 0; i < kQuantBlock; ++i) {
      out[spill.block * kQuantBlock + i] = spill.scale * static_cast<float>(spill.w[i]);
    }
  }
}

}  // namespace

const PackFormat kMxfp4Format = {
    .name = "MXFP4",
    .unit = kQuantBlock,
    .strip = kStrip,
    .panel_bytes = [](DType, int cols) { return Mxfp4PanelBytes(cols); },
    .pack = PackPanel,
    .check = CheckPanel,
    .unpack_row = Unpack,
};

}  // namespace hearth
