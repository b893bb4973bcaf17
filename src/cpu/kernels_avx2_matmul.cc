// SPDX-License-Identifier: Apache-2.0
// Products with packed weights on AVX2, and again with VNNI: a panel is two vectors of eight rows.
// Sums stay exact because every step fits: MXFP4 multiplies unshifted codes, at most 24, and shifts
// the block's sum; Q8 without VNNI multiplies whole 16-bit activations.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/avx2_products.inl"
#include "cpu/canon.inl"

// Eight rows and one half of the activations: 16 columns add up in 16 bits (4 * 2 * 24 * 128 fits),
// then widen; with VNNI they are 32 bits at once.
inline __m256i Mxfp4Sum(const __m256i (&w)[8], const int8_t* x) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  if constexpr (kVnni) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      sum = _mm256_dpbusd_avx_epi32(sum, w[i], _mm256_set1_epi32(Load32(x + 4 * i)));
    }
    return sum;
  }
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m256i narrow = _mm256_maddubs_epi16(w[4 * half], _mm256_set1_epi32(Load32(x + 16 * half)));
#pragma GCC unroll 3
    for (int i = 1; i < 4; ++i) {
      narrow = _mm256_add_epi16(
          narrow,
          _mm256_maddubs_epi16(w[4 * half + i], _mm256_set1_epi32(Load32(x + 16 * half + 4 * i))));
    }
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, ones));
  }
  return sum;
}

// Rows 8 * half .. 8 * half + 7 of a block: codes plus 12, four columns per lane.
inline void Mxfp4Codes(const uint8_t* nibbles, int half, __m256i (&w)[8]) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 4
  for (int line = 0; line < 4; ++line) {
    const __m256i raw = Load(nibbles + line * 64 + half * 32);
    w[2 * line] = _mm256_shuffle_epi8(table, _mm256_and_si256(raw, nibble));
    w[2 * line + 1] =
        _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(raw, 4), nibble));
  }
}

inline __m256i Widened8(const uint8_t* at) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
}

// One panel, kTokens tokens, one half of the rows at a time within each block.
template <int kTokens>
void Mxfp4Panel(const MatmulArgs& args, int token, const uint8_t* panel, float* y) {
  const PackedMatrix& w = *args.w;
  const int blocks = w.cols / kQuantBlock;
  const uint8_t *shifts = Mxfp4Shifts(panel, w.cols), *nibbles = Mxfp4Nibbles(panel, w.cols);
  __m256 sum[2][kTokens];
  for (auto& half : sum) {
    for (__m256& value : half) value = _mm256_setzero_ps();
  }
  for (int c = 0; c * kStripBlocks < blocks; ++c) {
    const int begin = c * kStripBlocks;
    const int end = begin + kStripBlocks < blocks ? begin + kStripBlocks : blocks;
    __m256i exact[2][kTokens];
    for (auto& half : exact) {
      for (__m256i& value : half) value = _mm256_setzero_si256();
    }
    for (int b = begin; b < end; ++b) {
      Fetch<256>(nibbles + b * 256);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        __m256i codes[8];
        Mxfp4Codes(nibbles + b * 256, half, codes);
        const __m256i shift = _mm256_srli_epi32(Widened8(shifts + b * kPanelRows + half * 8), 4);
#pragma GCC unroll 4
        for (int t = 0; t < kTokens; ++t) {
          const Token x(*args.x, token + t);
          const __m256i high = Mxfp4Sum(codes, x.hi + b * kQuantBlock);
          const __m256i low = Mxfp4Sum(codes, x.lo + b * kQuantBlock);
          const __m256i joined = _mm256_sub_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, 8), low),
                                                  _mm256_set1_epi32(12 * BlockSum(x, b)));
          exact[half][t] = _mm256_add_epi32(exact[half][t], _mm256_sllv_epi32(joined, shift));
        }
      }
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i bases = Widened8(Mxfp4Bases(panel) + c * kPanelRows + half * 8);
      const __m256 scale = _mm256_castsi256_ps(_mm256_slli_epi32(bases, 23));
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const Token x(*args.x, token + t);
        const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale[c]));
        sum[half][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact[half][t]), both, sum[half][t]);
      }
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    for (int half = 0; half < 2; ++half) {
      _mm256_storeu_ps(y + (token + t) * args.y_stride + half * 8, sum[half][t]);
    }
  }
}

template <int kTokens>
void Q8Panel(const MatmulArgs& args, int token, const uint8_t* panel, float* y) {
  const PackedMatrix& w = *args.w;
  const uint8_t* codes = panel + Q8CodesAt(w.cols);
  __m256 sum[2][kTokens];
  for (auto& half : sum) {
    for (__m256& value : half) value = _mm256_setzero_ps();
  }
  for (int b = 0; b < w.cols / kQuantBlock; ++b) {
    Fetch<512>(codes + b * 512);
    BlockValues values[kTokens];
    for (int t = 0; t < kTokens; ++t) ReadBlock(Token(*args.x, token + t), b, values[t]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      BlockExact exact[kTokens];
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const int32_t block_sum = BlockSum(Token(*args.x, token + t), b);
        exact[t] = {_mm256_setzero_si256(), _mm256_set1_epi32(-128 * block_sum)};
      }
#pragma GCC unroll 8
      for (int line = 0; line < 8; ++line) {
        const __m256i raw = Load(codes + b * 512 + line * 64 + half * 32);
#pragma GCC unroll 4
        for (int t = 0; t < kTokens; ++t) AddLine(raw, values[t], line, exact[t]);
      }
      const auto* scales =
          reinterpret_cast<const __m128i*>(Q8Scales(panel) + b * kPanelRows + half * 8);
      const __m256 scale = _mm256_cvtph_ps(_mm_loadu_si128(scales));
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const Token x(*args.x, token + t);
        const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale[b / kStripBlocks]));
        sum[half][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(Joined(exact[t])), both, sum[half][t]);
      }
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    for (int half = 0; half < 2; ++half) {
      _mm256_storeu_ps(y + (token + t) * args.y_stride + half * 8, sum[half][t]);
    }
  }
}

#include "cpu/spills.inl"

void MatmulMxfp4(const MatmulArgs& args, int panel_begin, int panel_end) {
  static constexpr PanelFunction kFunctions[kMostTokens] = {Mxfp4Panel<1>, Mxfp4Panel<2>,
                                                            Mxfp4Panel<3>, Mxfp4Panel<4>};
  ForPanels(args, panel_begin, panel_end, kFunctions);
  AddSpills(args, panel_begin * kPanelRows, panel_end * kPanelRows);
  AddBias(args, panel_begin * kPanelRows, panel_end * kPanelRows);
}

void MatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end) {
  static constexpr PanelFunction kFunctions[kMostTokens] = {Q8Panel<1>, Q8Panel<2>, Q8Panel<3>,
                                                            Q8Panel<4>};
  ForPanels(args, panel_begin, panel_end, kFunctions);
  AddBias(args, panel_begin * kPanelRows, panel_end * kPanelRows);
}

}  // namespace

template <>
void AddAvx2Matmuls<kVnni>(KernelTable& table) noexcept {
  table.matmul[static_cast<int>(PackKind::kMxfp4)] = MatmulMxfp4;
  table.matmul[static_cast<int>(PackKind::kQ8)] = MatmulQ8;
}

}  // namespace hearth
