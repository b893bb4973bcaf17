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

// A line of a unit's codes at a time, which is one of each of its two blocks.
template <PackKind kKind>
struct BlockUnpacker {
  static constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  static constexpr int kUnitBytes = UnitBytes(kTraits);
  const uint8_t* unit = nullptr;
  int8_t* to = nullptr;
  int line = 0, left = 0;  // lines

  void Start(const PackedMatrix& w, int panel, int strip, Codes& out) {
    const int units = NumUnits(w.cols) - strip * kPairs;
    unit = w.data + panel * w.panel_bytes + int64_t{strip} * kPairs * kUnitBytes;
    to = out.tiles[0];
    line = 0;
    left = (units < kPairs ? units : kPairs) * kUnitLines;
  }
  [[gnu::always_inline]] void Lines(int count) {
    const __m512i offset = _mm512_set1_epi8(kTraits.has_table ? 0 : kTraits.offset);
    for (int i = count < left ? count : left; i > 0; --i) {
      // To L2 only: about the strip after this one, for L1 is full.
      const uint8_t* ahead = unit + kPairs * kUnitBytes + line * 64;
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      if (line < kUnitBytes / 64 - kUnitLines) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead + kUnitLines * 64), _MM_HINT_T1);
      }
      _mm512_store_si512(to, _mm512_sub_epi8(CodeLine<kKind, 0, 0>(unit, line), offset));
      _mm512_store_si512(to + kTile, _mm512_sub_epi8(CodeLine<kKind, 1, 0>(unit, line), offset));
      to += 64;
      --left;
      if (++line < kUnitLines) continue;
      line = 0;
      unit += kUnitBytes;
      to += kTile;
    }
  }
};

template <PackKind kKind, int kActPlanes>
struct Blocks {
  using Unpacker = BlockUnpacker<kKind>;
  static constexpr int kPlanes = kActPlanes;
  static constexpr bool kHasMin = BlockTraitsOf(kKind).has_min;
  static constexpr int kScaleStride = Unpacker::kUnitBytes;
  static const uint8_t* Scales(const PackedMatrix& w, int panel, int strip) {
    const int64_t unit = int64_t{strip} * kPairs * Unpacker::kUnitBytes;
    return reinterpret_cast<const uint8_t*>(FactorsOf(w.data + panel * w.panel_bytes + unit));
  }
  static __m512 Scale(const uint8_t* at, int block) { return Widened(at + block * 2 * kPanelRows); }
};

template <int kPlanes>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  switch (args.w->kind) {
    case PackKind::kQ4_0:
      return Products<Blocks<PackKind::kQ4_0, kPlanes>>(args, panel_begin, panel_end);
    case PackKind::kQ4_1:
      return Products<Blocks<PackKind::kQ4_1, kPlanes>>(args, panel_begin, panel_end);
    case PackKind::kQ5_0:
      return Products<Blocks<PackKind::kQ5_0, kPlanes>>(args, panel_begin, panel_end);
    case PackKind::kQ5_1:
      return Products<Blocks<PackKind::kQ5_1, kPlanes>>(args, panel_begin, panel_end);
    default:
      return Products<Blocks<PackKind::kIq4Nl, kPlanes>>(args, panel_begin, panel_end);
  }
}

}  // namespace

void AmxMatmulBlocks(const MatmulArgs& args, int panel_begin, int panel_end) {
  const MatmulKernel product = args.x->planes == 2 ? Matmul<2> : Matmul<1>;
  product(args, panel_begin, panel_end);
}

}  // namespace hearth
