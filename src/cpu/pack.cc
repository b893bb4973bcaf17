// SPDX-License-Identifier: Apache-2.0
// Packing at the speed of memory: sixteen rows at once, with SSE2, which every x86-64 has, so that
// no table of kernels is needed. pack_plain.cc is the same in plain words.
#include "cpu/pack.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/num.h"
#include "cpu/panels.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

// A scale from here on may make a block infinite, 255 makes it NaN (tensor/check_blocks.cc).
constexpr uint8_t kSuspectExponent = 253;
constexpr uint16_t kF16Exponent = 0x7c00;

__m128i Load(const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
void Store(uint8_t* at, __m128i value) { _mm_store_si128(reinterpret_cast<__m128i*>(at), value); }

// Four rows of four words become four columns of four.
void Transpose(__m128i* q) {
  const __m128i a = _mm_unpacklo_epi32(q[0], q[1]), b = _mm_unpackhi_epi32(q[0], q[1]);
  const __m128i c = _mm_unpacklo_epi32(q[2], q[3]), d = _mm_unpackhi_epi32(q[2], q[3]);
  q[0] = _mm_unpacklo_epi64(a, c);
  q[1] = _mm_unpackhi_epi64(a, c);
  q[2] = _mm_unpacklo_epi64(b, d);
  q[3] = _mm_unpackhi_epi64(b, d);
}

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
    const int cols = matrix_.cols, blocks = cols / kQuantBlock, chunks = NumChunks(cols);
    const int64_t shifts_at = Mxfp4ShiftsAt(cols), nibbles_at = Mxfp4NibblesAt(cols);
    std::memset(panel_ + chunks * kPanelRows, 0,
                static_cast<size_t>(shifts_at - chunks * kPanelRows));
    std::memset(panel_ + shifts_at + blocks * kPanelRows, 0,
                static_cast<size_t>(nibbles_at - shifts_at - blocks * kPanelRows));
    const size_t spilled_before = spills.size();
    for (int c = 0; c < chunks; ++c) {
      const int first = c * kChunkBlocks, last = std::min(blocks, first + kChunkBlocks);
      for (int b = first; b < last; ++b) CopyBlock(b, panel_ + nibbles_at + b * 256, b - first);
      FoldChunk(c, first, last, spills);
    }
    // Lanes of a chunk came together; the order is by row, then by block.
    std::sort(spills.begin() + static_cast<std::ptrdiff_t>(spilled_before), spills.end(),
              [](const SpilledBlock& a, const SpilledBlock& b) {
                return a.row != b.row ? a.row < b.row : a.block < b.block;
              });
    const __m128i limit = _mm_set1_epi8(static_cast<char>(kSuspectExponent));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(largest_, limit), largest_)) == 0;
  }

 private:
  // Nibbles to their place; exponents and who is all zeros into `block` of the chunk's tables.
  void CopyBlock(int b, uint8_t* out, int block) {
    const bool planes = nibble_step_ == 16;
    const __m128i magnitude = _mm_set1_epi8(0x77), zero = _mm_setzero_si128();
    __m128i zeros[4];
    for (int g = 0; g < 4; ++g) {
      __m128i q[4], lines[4];
      for (int i = 0; i < 4; ++i) q[i] = Load(nibbles_[4 * g + i] + b * nibble_step_);
      Transpose(q);
      const __m128i any = _mm_or_si128(_mm_or_si128(q[0], q[1]), _mm_or_si128(q[2], q[3]));
      zeros[g] = _mm_cmpeq_epi32(_mm_and_si128(any, magnitude), zero);
      if (planes) {
        for (int i = 0; i < 4; ++i) lines[i] = LineOfPlane(q[i]);
      } else {
        LinesOfBlock(q, lines);
      }
      for (int c = 0; c < 4; ++c) Store(out + c * 64 + g * 16, lines[c]);
    }
    is_zero_[block] =
        _mm_packs_epi16(_mm_packs_epi32(zeros[0], zeros[1]), _mm_packs_epi32(zeros[2], zeros[3]));
    alignas(16) uint8_t sixteen[kPanelRows];
    for (int lane = 0; lane < kPanelRows; ++lane) {
      sixteen[lane] = exponents_[lane][b * exponent_step_];
    }
    exponent_[block] = Load(sixteen);
  }

  // Sixteen rows' base and shifts, in bytes. base + 1 is at most 252, so an exponent below it wraps
  // to 4 or more and cannot pass for a shift.
  void FoldChunk(int chunk, int first, int last, std::vector<SpilledBlock>& spills) {
    __m128i top = _mm_setzero_si128();
    for (int i = 0; i < last - first; ++i) {
      top = _mm_max_epu8(top, _mm_andnot_si128(is_zero_[i], exponent_[i]));
      largest_ = _mm_max_epu8(largest_, exponent_[i]);
    }
    const __m128i one = _mm_set1_epi8(1), three = _mm_set1_epi8(3);
    const __m128i base = _mm_max_epu8(_mm_subs_epu8(top, _mm_set1_epi8(4)), one);
    Store(panel_ + chunk * kPanelRows, base);
    uint8_t* shifts = panel_ + Mxfp4ShiftsAt(matrix_.cols);
    for (int i = 0; i < last - first; ++i) {
      const __m128i above = _mm_sub_epi8(exponent_[i], _mm_add_epi8(base, one));
      const __m128i fits = _mm_cmpeq_epi8(_mm_min_epu8(above, three), above);
      Store(shifts + (first + i) * kPanelRows, _mm_slli_epi16(_mm_and_si128(above, fits), 4));
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
  __m128i exponent_[kChunkBlocks], is_zero_[kChunkBlocks];
  __m128i largest_ = _mm_setzero_si128();
};

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
        for (int i = 0; i < 4; ++i) q[i] = Load(rows[4 * g + i] + b * 34 + 2 + half * 16);
        Transpose(q);
        for (int i = 0; i < 4; ++i) {
          Store(out + (4 * half + i) * 64 + g * 16, _mm_xor_si128(q[i], sign));
        }
      }
    }
  }
  return plausible;
}

// For the rows of a panel that is not full.
bool PlausibleRow(const MatView& matrix, int row) {
  const auto* data = reinterpret_cast<const uint8_t*>(matrix.data + row * matrix.row_bytes);
  bool plausible = true;
  for (int b = 0; b < matrix.cols / kQuantBlock; ++b) {
    if (matrix.dtype == DType::kQ8_0) {
      plausible &= ((data[b * 34 + 1] << 8) & kF16Exponent) != kF16Exponent;
    } else if (matrix.dtype == DType::kMxfp4) {
      plausible &= data[b * 17] < kSuspectExponent;
    } else {
      const std::byte scale = matrix.scales[row * matrix.scale_row_bytes + b];
      plausible &= static_cast<uint8_t>(scale) < kSuspectExponent;
    }
  }
  return plausible;
}

void CopyRawRow(const MatView& matrix, int row, uint8_t* dst) {
  const BlockShape block = BlockShapeOf(matrix.dtype);
  const std::byte* src = matrix.data + row * matrix.row_bytes;
  if (block.elems > 1 || matrix.col_bytes == block.bytes) {
    std::memcpy(dst, src, static_cast<size_t>(PanelBytesOf(matrix)));
    return;
  }
  for (int i = 0; i < matrix.cols; ++i) {
    std::memcpy(dst + i * block.bytes, src + i * matrix.col_bytes,
                static_cast<size_t>(block.bytes));
  }
}

bool CopyRawRows(const MatView& matrix, int row_begin, int row_end, uint8_t* dst) {
  const int64_t row_bytes = PanelBytesOf(matrix);
  for (int row = row_begin; row < row_end; ++row) CopyRawRow(matrix, row, dst + row * row_bytes);
  const std::span<const uint8_t> copied(dst + row_begin * row_bytes,
                                        static_cast<size_t>((row_end - row_begin) * row_bytes));
  return CheckBlocks(matrix.dtype, std::as_bytes(copied)).ok();
}

}  // namespace

PackKind PackKindOf(const MatView& matrix) {
  if (matrix.cols % kQuantBlock != 0) return PackKind::kRaw;
  if (matrix.dtype == DType::kMxfp4 || matrix.dtype == DType::kMxfp4Planes) return PackKind::kMxfp4;
  return matrix.dtype == DType::kQ8_0 ? PackKind::kQ8 : PackKind::kRaw;
}

int64_t PanelBytesOf(const MatView& matrix) {
  switch (PackKindOf(matrix)) {
    case PackKind::kMxfp4:
      return Mxfp4PanelBytes(matrix.cols);
    case PackKind::kQ8:
      return Q8PanelBytes(matrix.cols);
    case PackKind::kRaw:
      break;
  }
  const BlockShape block = BlockShapeOf(matrix.dtype);
  return int64_t{matrix.cols} / block.elems * block.bytes;
}

int64_t PackedBytes(const MatView& matrix) {
  const bool in_panels = PackKindOf(matrix) != PackKind::kRaw;
  return LineUp((in_panels ? NumPanels(matrix.rows) : matrix.rows) * PanelBytesOf(matrix));
}

bool PackPanels(const MatView& matrix, int panel_begin, int panel_end, uint8_t* dst,
                std::vector<SpilledBlock>& spills) {
  const PackKind kind = PackKindOf(matrix);
  const int row_end = std::min(matrix.rows, panel_end * kPanelRows);
  if (kind == PackKind::kRaw) return CopyRawRows(matrix, panel_begin * kPanelRows, row_end, dst);
  const int64_t panel_bytes = PanelBytesOf(matrix);
  bool plausible = true;
  for (int p = panel_begin; p < panel_end; ++p) {
    const int first_row = p * kPanelRows;
    if (first_row + kPanelRows > row_end) {
      PackPanelsPlainly(matrix, p, p + 1, dst, spills);
      for (int row = first_row; row < row_end; ++row) plausible &= PlausibleRow(matrix, row);
    } else if (kind == PackKind::kQ8) {
      plausible &= PackQ8Panel(matrix, first_row, dst + p * panel_bytes);
    } else {
      plausible &= Mxfp4Panel(matrix, first_row, dst + p * panel_bytes).Pack(spills);
    }
  }
  return plausible;
}

bool CheckPanels(const PackedMatrix& packed, int panel_begin, int panel_end) {
  const int blocks = packed.cols / kQuantBlock;
  if (packed.kind == PackKind::kRaw) {
    const int64_t row_begin = int64_t{panel_begin} * kPanelRows;
    const int64_t row_end = std::min<int64_t>(packed.rows, int64_t{panel_end} * kPanelRows);
    const std::span<const uint8_t> rows(
        packed.data + row_begin * packed.panel_bytes,
        static_cast<size_t>((row_end - row_begin) * packed.panel_bytes));
    return CheckBlocks(static_cast<DType>(packed.dtype), std::as_bytes(rows)).ok();
  }
  // Gathered without a branch, so that the compiler can use whole vectors.
  uint8_t wrong = 0;
  for (int p = panel_begin; p < panel_end; ++p) {
    const uint8_t* panel = packed.data + p * packed.panel_bytes;
    const int num_scales = blocks * kPanelRows;
    if (packed.kind == PackKind::kQ8) {
      const uint16_t* factors = Q8Scales(panel);
      uint16_t suspects = 0;
      for (int i = 0; i < num_scales; ++i) {
        // Carries into the sign when all exponent bits are set.
        suspects |= static_cast<uint16_t>((factors[i] & kF16Exponent) + 0x0400);
      }
      wrong |= static_cast<uint8_t>(suspects >> 15);
      continue;
    }
    const uint8_t *bases = Mxfp4Bases(panel), *shifts = Mxfp4Shifts(panel, packed.cols);
    for (int i = 0; i < NumChunks(packed.cols) * kPanelRows; ++i) {
      wrong |= static_cast<uint8_t>(bases[i] < 1 || bases[i] >= kSuspectExponent);
    }
    for (int i = 0; i < num_scales; ++i) wrong |= shifts[i] & 0xcf;
  }
  return wrong == 0;
}

void UnpackRow(const PackedMatrix& packed, int row, float* out) {
  if (packed.kind == PackKind::kRaw) {
    DecodeBlocks(static_cast<DType>(packed.dtype),
                 reinterpret_cast<const std::byte*>(packed.data + row * packed.panel_bytes),
                 packed.cols, out);
    return;
  }
  const uint8_t* panel = packed.data + row / kPanelRows * packed.panel_bytes;
  const int lane = row % kPanelRows, cols = packed.cols;
  for (int i = 0; i < cols; ++i) {
    const int b = i / kQuantBlock;
    if (packed.kind == PackKind::kQ8) {
      out[i] = F32FromF16(Q8Scales(panel)[b * kPanelRows + lane]) *
               static_cast<float>(Q8Code(panel, cols, b, lane, i % kQuantBlock));
      continue;
    }
    const int shift = Mxfp4Shifts(panel, cols)[b * kPanelRows + lane] >> 4;
    const int code = Mxfp4Code(panel, cols, b, lane, i % kQuantBlock);
    const int base = Mxfp4Bases(panel)[i / kChunk * kPanelRows + lane];
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

}  // namespace hearth
