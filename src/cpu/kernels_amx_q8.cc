// SPDX-License-Identifier: Apache-2.0
// Q8 products on AMX. Every block of 32 columns has a scale of its own, so each tile instruction
// sums one block and vectors take the sums over: 16 tokens by one panel keep their sixteen vectors
// of floats in registers for a whole chunk.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

constexpr int kTile = kQuantBlock * kPanelRows;  // bytes of a block's weights
constexpr int kBlockRows = 128;                  // tokens that stay in L2 while the weights pass
constexpr ShapesByTokens kShapes = ShapesOfDepth(kQuantBlock);

// A chunk of one panel: signed codes, and scales as floats.
struct Weights {
  alignas(64) int8_t tiles[kChunkBlocks][kTile];
  alignas(64) float scales[kChunkBlocks][kPanelRows];

  void Unpack(const uint8_t* panel, int cols, int first_block, int blocks) {
    const __m512i flip = _mm512_set1_epi8(-128);
    const uint8_t* codes = panel + Q8CodesAt(cols) + int64_t{first_block} * kTile;
    const uint16_t* halves = Q8Scales(panel) + first_block * kPanelRows;
    for (int b = 0; b < blocks; ++b) {
      const auto* scale = reinterpret_cast<const __m256i*>(halves + b * kPanelRows);
      _mm512_store_ps(scales[b], _mm512_cvtph_ps(_mm256_load_si256(scale)));
      for (int line = 0; line < kTile; line += 64) {
        const uint8_t* at = codes + b * kTile + line;
        // To L2 only: the chunk after this one, for L1 is full.
        _mm_prefetch(reinterpret_cast<const char*>(at + kChunkBlocks * kTile), _MM_HINT_T1);
        _mm512_store_si512(tiles[b] + line, _mm512_xor_si512(_mm512_load_si512(at), flip));
      }
    }
  }
};

// What the tiles leave for the vectors.
struct alignas(64) Sums {
  int32_t high[kTileInts], low[kTileInts];  // [token][row]
};

// Two sets of tiles, so that the sums of one block are stored while the next are made.
template <int kSet>
inline void SumBlock(const int8_t* hi, const int8_t* lo, int64_t stride, const int8_t* weights) {
  if constexpr (kSet == 0) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_loadd(6, weights, 64);
    _tile_loadd(4, hi, stride);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(5, lo, stride);
    _tile_dpbssd(1, 5, 6);
  } else {
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(7, weights, 64);
    _tile_loadd(4, hi, stride);
    _tile_dpbssd(2, 4, 7);
    _tile_loadd(5, lo, stride);
    _tile_dpbssd(3, 5, 7);
  }
}

template <int kSet>
inline void Store(Sums& sums) {
  if constexpr (kSet == 0) {
    _tile_stored(0, sums.high, 64);
    _tile_stored(1, sums.low, 64);
  } else {
    _tile_stored(2, sums.high, 64);
    _tile_stored(3, sums.low, 64);
  }
  TileFence();
}

inline void UseSums(const Sums& sums, const float* scales, const float* token_scales,
                    __m512 (&totals)[kTileRows]) {
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    const __m512i high = _mm512_load_si512(sums.high + t * kPanelRows);
    const __m512i low = _mm512_load_si512(sums.low + t * kPanelRows);
    const __m512i exact = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
    const __m512 scale = _mm512_mul_ps(_mm512_load_ps(scales), _mm512_set1_ps(token_scales[t]));
    totals[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scale, totals[t]);
  }
}

// All blocks of a chunk, ascending.
inline void SumChunk(const Weights& weights, int blocks, const int8_t* hi, const int8_t* lo,
                     int64_t stride, const float* token_scales, __m512 (&totals)[kTileRows]) {
  Sums sums[2];
  SumBlock<0>(hi, lo, stride, weights.tiles[0]);
  for (int b = 0; b < blocks; b += 2) {
    int at = (b + 1) * kQuantBlock;
    if (b + 1 < blocks) SumBlock<1>(hi + at, lo + at, stride, weights.tiles[b + 1]);
    Store<0>(sums[0]);
    UseSums(sums[0], weights.scales[b], token_scales, totals);
    if (b + 1 == blocks) return;
    at += kQuantBlock;
    if (b + 2 < blocks) SumBlock<0>(hi + at, lo + at, stride, weights.tiles[b + 2]);
    Store<1>(sums[1]);
    UseSums(sums[1], weights.scales[b + 1], token_scales, totals);
  }
}

// Up to 16 tokens from `first` on, of which those before `from` are done, through one chunk.
void Tokens(const MatmulArgs& args, const Weights& weights, int panel, int chunk, int blocks,
            int first, int from) {
  const Activations& x = *args.x;
  const int count = x.m < kTileRows ? x.m : kTileRows;
  float token_scales[kTileRows] = {};
  __m512 totals[kTileRows];
  float* y = args.y + first * args.y_stride + panel * kPanelRows;
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    if (t < count) token_scales[t] = x.scale[int64_t{first + t} * x.num_chunks + chunk];
    const bool continues = chunk > 0 && t < count;
    totals[t] = continues ? _mm512_loadu_ps(y + t * args.y_stride) : _mm512_setzero_ps();
  }
  const int64_t at = int64_t{first} * x.stride + chunk * kChunk;
  SumChunk(weights, blocks, x.hi + at, x.lo + at, x.stride, token_scales, totals);
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    if (first + t >= from && t < count) _mm512_storeu_ps(y + t * args.y_stride, totals[t]);
  }
}

// Rows [begin, end) of the activations through one panel.
void Product(const MatmulArgs& args, int panel, int begin, int end) {
  const Activations& x = *args.x;
  const int all_blocks = args.w->cols / kQuantBlock;
  const uint8_t* data = args.w->data + panel * args.w->panel_bytes;
  Weights weights;
  for (int c = 0; c < x.num_chunks; ++c) {
    const int left = all_blocks - c * kChunkBlocks;
    const int blocks = left < kChunkBlocks ? left : kChunkBlocks;
    weights.Unpack(data, args.w->cols, c * kChunkBlocks, blocks);
    TileFence();
    for (int t = begin; t < end; t += kTileRows) {
      // The last tokens reach back over rows that are done rather than past the end.
      const int first = t + kTileRows <= x.m ? t : (x.m < kTileRows ? 0 : x.m - kTileRows);
      Tokens(args, weights, panel, c, blocks, first, t);
    }
  }
  if (args.bias == nullptr) return;
  const __m512 bias = _mm512_loadu_ps(args.bias + panel * kPanelRows);
  for (int64_t t = begin; t < end; ++t) {
    float* y = args.y + t * args.y_stride + panel * kPanelRows;
    _mm512_storeu_ps(y, _mm512_add_ps(_mm512_loadu_ps(y), bias));
  }
}

}  // namespace

void AmxMatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m;
  if (m == 0) return;
  _tile_loadconfig(&kShapes.of[m < kTileRows ? m : kTileRows]);
  for (int begin = 0; begin < m; begin += kBlockRows) {
    const int end = begin + kBlockRows < m ? begin + kBlockRows : m;
    for (int p = panel_begin; p < panel_end; ++p) Product(args, p, begin, end);
  }
  _tile_release();
}

}  // namespace hearth
