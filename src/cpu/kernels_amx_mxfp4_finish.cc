// SPDX-License-Identifier: Apache-2.0
// What an MXFP4 product still lacks after its last strip: spilled blocks, then the bias.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

__m512i SixteenBit(const int8_t* at) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}

void AddSpills(const MatmulArgs& args, int row_begin, int row_end, int begin, int end) {
  const PackedMatrix& w = *args.w;
  const Activations& x = *args.x;
  int s = 0;
  for (int above = w.num_spills; s < above;) {  // the first of row_begin or later
    const int middle = (s + above) / 2;
    if (w.spills[middle].row < row_begin) {
      s = middle + 1;
    } else {
      above = middle;
    }
  }
  for (; s < w.num_spills && w.spills[s].row < row_end; ++s) {
    const SpilledBlock& spill = w.spills[s];
    const __m512i weights = SixteenBit(spill.w);
    const int strip = spill.block / (x.strip / kQuantBlock);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * x.stride + spill.block * kQuantBlock;
      __m512i sums = _mm512_madd_epi16(weights, SixteenBit(x.lo + at));
      if (x.planes == 2) {
        const __m512i high = _mm512_madd_epi16(weights, SixteenBit(x.hi + at));
        sums = _mm512_add_epi32(_mm512_slli_epi32(high, 8), sums);
      }
      const int32_t exact = _mm512_reduce_add_epi32(sums);
      float& y = args.y[t * args.y_stride + spill.row];
      y = FusedMulAdd(static_cast<float>(exact), spill.scale * x.scale[t * x.num_strips + strip],
                      y);
    }
  }
}

void AddBias(const MatmulArgs& args, int panel_begin, int panel_end, int begin, int end) {
  if (args.bias == nullptr) return;
  for (int64_t t = begin; t < end; ++t) {
    for (int p = panel_begin; p < panel_end; ++p) {
      float* y = args.y + t * args.y_stride + p * kPanelRows;
      const __m512 bias = _mm512_loadu_ps(args.bias + p * kPanelRows);
      _mm512_storeu_ps(y, _mm512_add_ps(_mm512_loadu_ps(y), bias));
    }
  }
}

}  // namespace

void AmxFinishMxfp4(const MatmulArgs& args, int panel_begin, int panel_end, int begin, int end) {
  AddSpills(args, panel_begin * kPanelRows, panel_end * kPanelRows, begin, end);
  AddBias(args, panel_begin, panel_end, begin, end);
}

}  // namespace hearth
