// SPDX-License-Identifier: Apache-2.0
// Products with Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL weights on AVX2, and again with VNNI. Without it,
// like Q8, codes of 16 bits times whole activations, which fits every format. (Bytes times halves
// of activations would take as many steps: their sums of 16 bits must be widened after every
// fourth.)
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels_blocks.h"

namespace hearth {
namespace {

#include "cpu/avx2_products.inl"

// Half a line: four columns of eight rows as bytes, plus 127 if they come from a table.
template <PackKind kKind, int kBlock>
inline __m256i Codes(const uint8_t* unit, int line, int half) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i raw = Load(unit + CodesAt(kTraits) + line * 64 + half * 32);
  const __m256i code = _mm256_and_si256(kBlock == 0 ? raw : _mm256_srli_epi16(raw, 4), nibble);
  if constexpr (kTraits.has_table) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Codes));
    const __m128i table = _mm_add_epi8(values, _mm_set1_epi8(kTraits.offset));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), code);
  }
  if constexpr (kTraits.has_fifth) {
    const __m256i bits = Load(unit + FifthAt(kTraits) + line / 4 * 64 + half * 32);
    const __m256i bit = _mm256_set1_epi8(static_cast<char>(1 << (4 * kBlock + line % 4)));
    const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit);
    return _mm256_or_si256(code, _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
  }
  return code;
}

inline __m256 Halves(const uint16_t* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

// One block of a unit: its exact sums, joined with both scales.
template <PackKind kKind, int kBlock, int kTokens>
inline void Block(const MatmulArgs& args, int token, const uint8_t* unit, int block,
                  __m256 (&sum)[2][kTokens]) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  BlockValues values[kTokens];
  for (int t = 0; t < kTokens; ++t) ReadBlock(Token(*args.x, token + t), block, values[t]);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    BlockExact exact[kTokens];
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      const int32_t block_sum = BlockSum(Token(*args.x, token + t), block);
      exact[t] = {_mm256_setzero_si256(), _mm256_set1_epi32(-kTraits.offset * block_sum)};
    }
#pragma GCC unroll 8
    for (int line = 0; line < kUnitLines; ++line) {
      const __m256i codes = Codes<kKind, kBlock>(unit, line, half);
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) AddLine(codes, values[t], line, exact[t]);
    }
    const int row = kBlock * kPanelRows + half * 8;
    const __m256 factor = Halves(FactorsOf(unit) + row);
#pragma GCC unroll 4
    for (int t = 0; t < kTokens; ++t) {
      const Token x(*args.x, token + t);
      const __m256 scale = _mm256_set1_ps(x.scale[block / kStripBlocks]);
      sum[half][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(Joined(exact[t])),
                                     _mm256_mul_ps(factor, scale), sum[half][t]);
      if constexpr (kTraits.has_min) {
        const __m256 minimum = _mm256_mul_ps(Halves(MinimaOf(unit) + row), scale);
        const __m256 block_sum = _mm256_set1_ps(static_cast<float>(BlockSum(x, block)));
        sum[half][t] = _mm256_fmadd_ps(block_sum, minimum, sum[half][t]);
      }
    }
  }
}

template <PackKind kKind, int kTokens>
void BlockPanel(const MatmulArgs& args, int token, const uint8_t* panel, float* y) {
  constexpr int kUnitBytes = UnitBytes(BlockTraitsOf(kKind));
  __m256 sum[2][kTokens];
  for (auto& half : sum) {
    for (__m256& value : half) value = _mm256_setzero_ps();
  }
  const int units = NumUnits(args.w->cols);
#pragma GCC unroll 1
  for (int n = 0; n < units; ++n) {
    const uint8_t* unit = panel + int64_t{n} * kUnitBytes;
    Fetch<kUnitBytes>(unit);
    Block<kKind, 0, kTokens>(args, token, unit, 2 * n, sum);
    Block<kKind, 1, kTokens>(args, token, unit, 2 * n + 1, sum);
  }
  for (int t = 0; t < kTokens; ++t) {
    for (int half = 0; half < 2; ++half) {
      _mm256_storeu_ps(y + (token + t) * args.y_stride + half * 8, sum[half][t]);
    }
  }
}

template <PackKind kKind>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  static constexpr PanelFunction kFunctions[kMostTokens] = {
      BlockPanel<kKind, 1>, BlockPanel<kKind, 2>, BlockPanel<kKind, 3>, BlockPanel<kKind, 4>};
  ForPanels(args, panel_begin, panel_end, kFunctions);
  AddBias(args, panel_begin * kPanelRows, panel_end * kPanelRows);
}

}  // namespace

template <>
void AddAvx2Blocks<kVnni>(KernelTable& table) noexcept {
  BlockKinds::ForEach(
      [&]<PackKind kKind>() { table.matmul[static_cast<int>(kKind)] = Matmul<kKind>; });
}

}  // namespace hearth
