// SPDX-License-Identifier: Apache-2.0
// Q8 products on AMX.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/amx_block_sums.inl"

struct Q8 {
  static constexpr bool kHasMin = false;
  static void Unpack(const uint8_t* panel, int cols, int first_block, int blocks, Weights& out) {
    const __m512i flip = _mm512_set1_epi8(-128);
    const uint8_t* codes = panel + Q8CodesAt(cols) + int64_t{first_block} * kTile;
    const uint16_t* halves = Q8Scales(panel) + first_block * kPanelRows;
    for (int b = 0; b < blocks; ++b) {
      const auto* scale = reinterpret_cast<const __m256i*>(halves + b * kPanelRows);
      _mm512_store_ps(out.scales[b], _mm512_cvtph_ps(_mm256_load_si256(scale)));
      for (int line = 0; line < kTile; line += 64) {
        const uint8_t* at = codes + b * kTile + line;
        // To L2 only: the chunk after this one, for L1 is full.
        _mm_prefetch(reinterpret_cast<const char*>(at + kChunkBlocks * kTile), _MM_HINT_T1);
        _mm512_store_si512(out.tiles[b] + line, _mm512_xor_si512(_mm512_load_si512(at), flip));
      }
    }
  }
};

}  // namespace

void AmxMatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end) {
  Products<Q8>(args, panel_begin, panel_end);
}

}  // namespace hearth
