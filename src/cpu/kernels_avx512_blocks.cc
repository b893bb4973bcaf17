// SPDX-License-Identifier: Apache-2.0
// Products with Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL weights on VNNI, in the manner of
// kernels_avx512_matmul.cc: one to eight tokens, and with few of them three panels side by side.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels_blocks.h"

namespace hearth {
namespace {

#include "cpu/avx512_blocks.inl"
#include "cpu/avx512_products.inl"

// Plain high nibbles stay where they are: sixteen times the code. The block's sum is then a
// multiple of sixteen, which a shift takes away exactly; a factor of 1/16 in the scale would not
// be exact for subnormal scales.
template <PackKind kKind, int kBlock>
constexpr int kInPlace =
    BlockTraitsOf(kKind).has_fifth || BlockTraitsOf(kKind).has_table || kBlock == 0 ? 0 : 4;

template <PackKind kKind, int kBlock>
inline __m512i UnsignedCodes(const uint8_t* unit, int line) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  if constexpr (kInPlace<kKind, kBlock> == 0) {
    return CodeLine<kKind, kBlock, kTraits.offset>(unit, line);
  }
  const __m512i raw = _mm512_load_si512(unit + CodesAt(kTraits) + line * 64);
  return _mm512_andnot_si512(_mm512_set1_epi8(15), raw);
}

// One block of a unit of every panel: its exact sums, joined with both scales.
template <PackKind kKind, int kBlock, int kTokens, int kPanels>
inline void Block(const uint8_t* unit, int64_t panel_bytes, const Tokens<kTokens>& x, int block,
                  const float (&scales)[kTokens], __m512 (&sum)[kPanels][kTokens]) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  __m512i high[kPanels][kTokens], low[kPanels][kTokens];
  int32_t block_sum[kTokens];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    block_sum[t] = 256 * x.sum_hi[t][block] + x.sum_lo[t][block];
    // Codes are unsigned: take their offset times the block's activations away.
    const __m512i start =
        _mm512_set1_epi32(-(kTraits.offset << kInPlace<kKind, kBlock>)*block_sum[t]);
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      high[p][t] = _mm512_setzero_si512();
      low[p][t] = start;
    }
  }
#pragma GCC unroll 8
  for (int line = 0; line < kUnitLines; ++line) {
    __m512i codes[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p)
      codes[p] = UnsignedCodes<kKind, kBlock>(unit + p * panel_bytes, line);
    const int at = block * kQuantBlock + line * 4;
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      const __m512i hi = _mm512_set1_epi32(Load32(x.hi[t] + at));
      const __m512i lo = _mm512_set1_epi32(Load32(x.lo[t] + at));
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        high[p][t] = _mm512_dpbusd_epi32(high[p][t], codes[p], hi);
        low[p][t] = _mm512_dpbusd_epi32(low[p][t], codes[p], lo);
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const uint8_t* at = unit + p * panel_bytes;
    const __m512 factor = Halves(FactorsOf(at) + kBlock * kPanelRows);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      const __m512 scale = _mm512_set1_ps(scales[t]);
      __m512i exact = _mm512_add_epi32(_mm512_slli_epi32(high[p][t], 8), low[p][t]);
      if constexpr (kInPlace<kKind, kBlock> != 0) exact = _mm512_srai_epi32(exact, 4);
      sum[p][t] =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), _mm512_mul_ps(factor, scale), sum[p][t]);
      if constexpr (kTraits.has_min) {
        const __m512 minimum = Halves(MinimaOf(at) + kBlock * kPanelRows);
        sum[p][t] = _mm512_fmadd_ps(_mm512_set1_ps(static_cast<float>(block_sum[t])),
                                    _mm512_mul_ps(minimum, scale), sum[p][t]);
      }
    }
  }
}

template <PackKind kKind, int kTokens, int kPanels>
void BlockTile(const MatmulArgs& args, const Tile& tile) {
  constexpr int kUnitBytes = UnitBytes(BlockTraitsOf(kKind));
  const PackedMatrix& w = *args.w;
  const int units = NumUnits(w.cols);
  const uint8_t* panel = w.data + tile.panel * w.panel_bytes;
  const Ahead<kUnitBytes, 6> ahead(0, units, tile.jump);
  const Tokens<kTokens> x(*args.x, tile.token);
  __m512 sum[kPanels][kTokens];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) sum[p][t] = _mm512_setzero_ps();
  }
#pragma GCC unroll 1
  for (int n = 0; n < units; ++n) {
    const uint8_t* unit = panel + int64_t{n} * kUnitBytes;
    float scales[kTokens];
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) scales[t] = x.scale[t][2 * n / kStripBlocks];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) ahead.Fetch(panel + p * w.panel_bytes, n);
    Block<kKind, 0, kTokens, kPanels>(unit, w.panel_bytes, x, 2 * n, scales, sum);
    Block<kKind, 1, kTokens, kPanels>(unit, w.panel_bytes, x, 2 * n + 1, scales, sum);
  }
  Store<kTokens, kPanels>(args, tile, sum);
}

// More tokens than registers hold for several panels: two groups of them, one after the other.
template <PackKind kKind, int kTokens, int kPanels>
void TwoTiles(const MatmulArgs& args, const Tile& tile) {
  constexpr int kFirst = (kTokens + 1) / 2;
  BlockTile<kKind, kFirst, kPanels>(args, {tile.bias, tile.token, tile.panel, 0});
  BlockTile<kKind, kTokens - kFirst, kPanels>(
      args, {tile.bias, tile.token + kFirst, tile.panel, tile.jump});
}

template <PackKind kKind>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  static constexpr Choice kChoices[kMostTokens] = {
      {3, BlockTile<kKind, 1, 3>, BlockTile<kKind, 1, 1>},
      {3, BlockTile<kKind, 2, 3>, BlockTile<kKind, 2, 1>},
      {3, BlockTile<kKind, 3, 3>, BlockTile<kKind, 3, 1>},
      {3, BlockTile<kKind, 4, 3>, BlockTile<kKind, 4, 1>},
      {3, TwoTiles<kKind, 5, 3>, TwoTiles<kKind, 5, 1>},
      {3, TwoTiles<kKind, 6, 3>, TwoTiles<kKind, 6, 1>},
      {3, TwoTiles<kKind, 7, 3>, TwoTiles<kKind, 7, 1>},
      {3, TwoTiles<kKind, 8, 3>, TwoTiles<kKind, 8, 1>}};
  if (args.x->m > 0) ForTiles(args, args.bias, panel_begin, panel_end, kChoices);
}

}  // namespace

void AddAvx512Blocks(KernelTable& table) noexcept {
  BlockKinds::ForEach(
      [&]<PackKind kKind>() { table.matmul[static_cast<int>(kKind)] = Matmul<kKind>; });
}

}  // namespace hearth
