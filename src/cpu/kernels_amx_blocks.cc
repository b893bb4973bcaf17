// SPDX-License-Identifier: Apache-2.0
// Products with Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL weights on AMX.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/panels_blocks.h"

namespace hearth {
namespace {

#include "cpu/amx_block_sums.inl"
#include "cpu/avx512_blocks.inl"

template <PackKind kKind>
struct Blocks {
  static constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  static constexpr bool kHasMin = kTraits.has_min;
  static constexpr int kUnitBytes = UnitBytes(kTraits);

  template <int kBlock>
  static void UnpackBlock(const uint8_t* unit, int to, Weights& out) {
    const __m512i offset = _mm512_set1_epi8(kTraits.has_table ? 0 : kTraits.offset);
    _mm512_store_ps(out.scales[to], Halves(FactorsOf(unit) + kBlock * kPanelRows));
    if constexpr (kHasMin) {
      _mm512_store_ps(out.minima[to], Halves(MinimaOf(unit) + kBlock * kPanelRows));
    }
    for (int line = 0; line < kUnitLines; ++line) {
      const __m512i codes = Codes<kKind, kBlock, 0>(unit, line);
      _mm512_store_si512(out.tiles[to] + line * 64, _mm512_sub_epi8(codes, offset));
    }
  }

  static void Unpack(const uint8_t* panel, int, int first_block, int blocks, Weights& out) {
    const uint8_t* unit = panel + int64_t{first_block} / 2 * kUnitBytes;
    for (int b = 0; b < blocks; b += 2, unit += kUnitBytes) {
      // To L2 only: the chunk after this one, for L1 is full.
      for (int line = 0; line < kUnitBytes; line += 64) {
        const uint8_t* ahead = unit + kChunkBlocks / 2 * kUnitBytes + line;
        _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      }
      UnpackBlock<0>(unit, b, out);
      if (b + 1 < blocks) UnpackBlock<1>(unit, b + 1, out);
    }
  }
};

}  // namespace

void AmxMatmulBlocks(const MatmulArgs& args, int panel_begin, int panel_end) {
  switch (args.w->kind) {
    case PackKind::kQ4_0:
      return Products<Blocks<PackKind::kQ4_0>>(args, panel_begin, panel_end);
    case PackKind::kQ4_1:
      return Products<Blocks<PackKind::kQ4_1>>(args, panel_begin, panel_end);
    case PackKind::kQ5_0:
      return Products<Blocks<PackKind::kQ5_0>>(args, panel_begin, panel_end);
    case PackKind::kQ5_1:
      return Products<Blocks<PackKind::kQ5_1>>(args, panel_begin, panel_end);
    default:
      return Products<Blocks<PackKind::kIq4Nl>>(args, panel_begin, panel_end);
  }
}

}  // namespace hearth
