// SPDX-License-Identifier: Apache-2.0
// Products with packed weights on VNNI, and again with VBMI: sixteen rows of a panel times one to
// eight tokens. With few tokens several panels run side by side: three streams with a prefetch
// ahead read memory as fast as it goes, where one stream does not.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/avx512_products.inl"
#include "cpu/canon.inl"
#include "cpu/level.inl"

// The 16 codes at 4 shifts, plus 96 to be unsigned; each of 16 bytes four times; and the codes
// without a shift, plus 12.
struct Tables {
  alignas(64) uint8_t weights[64];
  alignas(64) uint8_t spread[64];
  alignas(16) uint8_t codes[16];
};
constexpr Tables MakeTables() {
  Tables tables{};
  for (int i = 0; i < 64; ++i) {
    tables.weights[i] = static_cast<uint8_t>(kTwiceE2m1[i % 16] * (1 << (i / 16)) + 96);
    tables.spread[i] = static_cast<uint8_t>(i / 4);
    tables.codes[i % 16] = static_cast<uint8_t>(kTwiceE2m1[i % 16] + 12);
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

inline __m128i Load16(const uint8_t* at) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(at));
}

// Nibbles of a block to weights plus 96, four columns a row. VBMI looks both up, code and shift.
// Without it codes plus 12 come from a table of 16, at most 24, and are shifted within their bytes;
// what the shift makes of 12 becomes 96.
class Mxfp4Lines {
 public:
  explicit Mxfp4Lines(const uint8_t* shifts) {
    if constexpr (kVbmi) {
      table_ = _mm512_load_si512(kTables.weights);
      shift_ = _mm512_permutexvar_epi8(_mm512_load_si512(kTables.spread),
                                       _mm512_castsi128_si512(Load16(shifts)));
    } else {
      table_ = _mm512_broadcast_i32x4(Load16(kTables.codes));
      shift_ = _mm512_srli_epi32(_mm512_cvtepu8_epi32(Load16(shifts)), 4);
      rest_ =
          _mm512_sub_epi8(_mm512_set1_epi8(96), _mm512_sllv_epi32(_mm512_set1_epi8(12), shift_));
    }
  }
  // Of the low half of every byte.
  __m512i Weights(__m512i raw) const {
    const __m512i nibble = _mm512_set1_epi8(15);
    if constexpr (kVbmi) {  // (raw & 15) | shift: an index into the table
      return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(raw, nibble, shift_, 0xea), table_);
    }
    const __m512i codes = _mm512_shuffle_epi8(table_, _mm512_and_si512(raw, nibble));
    return _mm512_add_epi8(_mm512_sllv_epi32(codes, shift_), rest_);
  }

 private:
  __m512i table_, shift_, rest_ = _mm512_setzero_si512();
};

// One block of one panel: 32 columns into the strip's sums.
template <int kTokens>
inline void Mxfp4Block(const uint8_t* shifts, const uint8_t* nibbles, const Tokens<kTokens>& x,
                       int column, __m512i (&high)[kTokens], __m512i (&low)[kTokens]) {
  const Mxfp4Lines lines(shifts);
#pragma GCC unroll 4
  for (int line = 0; line < 4; ++line) {
    const __m512i raw = _mm512_load_si512(nibbles + line * 64);
    const __m512i w0 = lines.Weights(raw);
    const __m512i w1 = lines.Weights(_mm512_srli_epi16(raw, 4));
    const int at = column + line * 8;
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      high[t] = _mm512_dpbusd_epi32(high[t], w0, _mm512_set1_epi32(Load32(x.hi[t] + at)));
      low[t] = _mm512_dpbusd_epi32(low[t], w0, _mm512_set1_epi32(Load32(x.lo[t] + at)));
      high[t] = _mm512_dpbusd_epi32(high[t], w1, _mm512_set1_epi32(Load32(x.hi[t] + at + 4)));
      low[t] = _mm512_dpbusd_epi32(low[t], w1, _mm512_set1_epi32(Load32(x.lo[t] + at + 4)));
    }
  }
}

inline int32_t SumOf(const int32_t* values, int begin, int end) {
  int32_t sum = 0;
  for (int i = begin; i < end; ++i) sum += values[i];
  return sum;
}

template <int kTokens, int kPanels>
void Mxfp4Tile(const MatmulArgs& args, const Tile& tile) {
  const PackedMatrix& w = *args.w;
  const int blocks = w.cols / kQuantBlock;
  const uint8_t* panel = w.data + tile.panel * w.panel_bytes;
  const int64_t shifts_at = Mxfp4ShiftsAt(w.cols), nibbles_at = Mxfp4NibblesAt(w.cols);
  const Ahead<256, 8> ahead(nibbles_at, blocks, tile.jump);
  const Tokens<kTokens> x(*args.x, tile.token);
  __m512 sum[kPanels][kTokens];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) sum[p][t] = _mm512_setzero_ps();
  }
  for (int c = 0; c * kStripBlocks < blocks; ++c) {
    const int begin = c * kStripBlocks;
    const int end = begin + kStripBlocks < blocks ? begin + kStripBlocks : blocks;
    __m512i high[kPanels][kTokens], low[kPanels][kTokens];
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      const __m512i from_high = _mm512_set1_epi32(-96 * SumOf(x.sum_hi[t], begin, end));
      const __m512i from_low = _mm512_set1_epi32(-96 * SumOf(x.sum_lo[t], begin, end));
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        high[p][t] = from_high;
        low[p][t] = from_low;
      }
    }
    for (int b = begin; b < end; ++b) {
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        const uint8_t* at = panel + p * w.panel_bytes;
        ahead.Fetch(at, b);
        Mxfp4Block<kTokens>(at + shifts_at + b * kPanelRows, at + nibbles_at + b * 256, x,
                            b * kQuantBlock, high[p], low[p]);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const __m128i bases = Load16(panel + p * w.panel_bytes + c * kPanelRows);
      const __m512 scale = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bases), 23));
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) {
        const __m512i exact = _mm512_add_epi32(_mm512_slli_epi32(high[p][t], 8), low[p][t]);
        const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale[t][c]));
        sum[p][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), both, sum[p][t]);
      }
    }
  }
  Store<kTokens, kPanels>(args, tile, sum);
}

// One block of one panel: its exact sums, joined with both scales.
template <int kTokens>
inline void Q8Block(const uint8_t* scales, const uint8_t* codes, const Tokens<kTokens>& x,
                    int block, const __m512i (&start)[kTokens], __m512 (&sum)[kTokens]) {
  __m512i high[kTokens], low[kTokens];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    high[t] = _mm512_setzero_si512();
    low[t] = start[t];
  }
#pragma GCC unroll 8
  for (int line = 0; line < 8; ++line) {
    const __m512i w = _mm512_load_si512(codes + line * 64);
    const int at = block * kQuantBlock + line * 4;
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      high[t] = _mm512_dpbusd_epi32(high[t], w, _mm512_set1_epi32(Load32(x.hi[t] + at)));
      low[t] = _mm512_dpbusd_epi32(low[t], w, _mm512_set1_epi32(Load32(x.lo[t] + at)));
    }
  }
  const __m512 scale = _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(scales)));
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    const __m512i exact = _mm512_add_epi32(_mm512_slli_epi32(high[t], 8), low[t]);
    const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale[t][block / kStripBlocks]));
    sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), both, sum[t]);
  }
}

template <int kTokens, int kPanels>
void Q8Tile(const MatmulArgs& args, const Tile& tile) {
  const PackedMatrix& w = *args.w;
  const int blocks = w.cols / kQuantBlock;
  const uint8_t* panel = w.data + tile.panel * w.panel_bytes;
  const int64_t codes_at = Q8CodesAt(w.cols);
  const Ahead<512, 4> ahead(codes_at, blocks, tile.jump);
  const Tokens<kTokens> x(*args.x, tile.token);
  __m512 sum[kPanels][kTokens];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) sum[p][t] = _mm512_setzero_ps();
  }
  for (int b = 0; b < blocks; ++b) {
    // Codes are stored plus 128: take 128 times the block's activations away.
    __m512i start[kTokens];
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      start[t] = _mm512_set1_epi32(-128 * (256 * x.sum_hi[t][b] + x.sum_lo[t][b]));
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* at = panel + p * w.panel_bytes;
      ahead.Fetch(at, b);
      Q8Block<kTokens>(at + b * 2 * kPanelRows, at + codes_at + b * 512, x, b, start, sum[p]);
    }
  }
  Store<kTokens, kPanels>(args, tile, sum);
}

#include "cpu/spills.inl"

void AddBias(const MatmulArgs& args, int row_begin, int row_end) {
  if (args.bias == nullptr) return;
  for (int t = 0; t < args.x->m; ++t) {
    float* y = args.y + t * args.y_stride;
    for (int r = row_begin; r < row_end; r += kPanelRows) {
      _mm512_storeu_ps(y + r,
                       _mm512_add_ps(_mm512_loadu_ps(y + r), _mm512_loadu_ps(args.bias + r)));
    }
  }
}

constexpr Choice kMxfp4[kMostTokens] = {
    {3, Mxfp4Tile<1, 3>, Mxfp4Tile<1, 1>}, {3, Mxfp4Tile<2, 3>, Mxfp4Tile<2, 1>},
    {2, Mxfp4Tile<3, 2>, Mxfp4Tile<3, 1>}, {2, Mxfp4Tile<4, 2>, Mxfp4Tile<4, 1>},
    {1, Mxfp4Tile<5, 1>, Mxfp4Tile<5, 1>}, {1, Mxfp4Tile<6, 1>, Mxfp4Tile<6, 1>},
    {1, Mxfp4Tile<7, 1>, Mxfp4Tile<7, 1>}, {1, Mxfp4Tile<8, 1>, Mxfp4Tile<8, 1>}};
constexpr Choice kQ8[kMostTokens] = {
    {3, Q8Tile<1, 3>, Q8Tile<1, 1>}, {3, Q8Tile<2, 3>, Q8Tile<2, 1>},
    {2, Q8Tile<3, 2>, Q8Tile<3, 1>}, {2, Q8Tile<4, 2>, Q8Tile<4, 1>},
    {1, Q8Tile<5, 1>, Q8Tile<5, 1>}, {1, Q8Tile<6, 1>, Q8Tile<6, 1>},
    {1, Q8Tile<7, 1>, Q8Tile<7, 1>}, {1, Q8Tile<8, 1>, Q8Tile<8, 1>}};

void MatmulMxfp4(const MatmulArgs& args, int panel_begin, int panel_end) {
  if (args.x->m == 0) return;
  const bool spills = args.w->num_spills > 0;  // they come before the bias
  ForTiles(args, spills ? nullptr : args.bias, panel_begin, panel_end, kMxfp4);
  if (!spills) return;
  AddSpills(args, panel_begin * kPanelRows, panel_end * kPanelRows);
  AddBias(args, panel_begin * kPanelRows, panel_end * kPanelRows);
}

void MatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end) {
  if (args.x->m > 0) ForTiles(args, args.bias, panel_begin, panel_end, kQ8);
}

}  // namespace

template <>
void AddAvx512Matmuls<kVbmi>(KernelTable& table) noexcept {
  table.matmul[static_cast<int>(PackKind::kMxfp4)] = MatmulMxfp4;
  table.matmul[static_cast<int>(PackKind::kQ8)] = MatmulQ8;
}

}  // namespace hearth
