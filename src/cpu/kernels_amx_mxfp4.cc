// SPDX-License-Identifier: Apache-2.0
// MXFP4 products on AMX. The sum of a strip is exact in either half of the activations, so tiles of
// 16 tokens by 16 rows give the integers of kernels_scalar.cc; vectors then do its float steps.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/kernels_amx_mxfp4.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/amx_tile_steps.inl"

// Tokens that are taken through all strips before the next: their halves, 5760 bytes a token for
// gpt-oss, must stay in L2 while the weights pass.
constexpr int kBlockRows = 128;

constexpr ShapesByTokens kShapes = ShapesOfDepth(kStep);

// One or two panels of which a strip is at work.
template <int kPanels>
struct Weights {
  const uint8_t *bases[kPanels], *shifts[kPanels], *nibbles[kPanels];
  int blocks;
  int64_t next;      // bytes from a line of this strip to the line that will be unpacked after it
  int64_t jump;      // bytes to the panels after these
  int header_lines;  // of those panels, to be asked for during this strip
  alignas(64) int8_t tiles[kSteps][kPanels][kTileBytes];
  // Of this strip and the one before it, whose last sums are still to be used.
  alignas(64) float base[2][kPanels][kPanelRows];

  void Start(const PackedMatrix& w, int panel) {
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* data = w.data + (panel + p) * w.panel_bytes;
      bases[p] = Mxfp4Bases(data);
      shifts[p] = Mxfp4Shifts(data, w.cols);
      nibbles[p] = Mxfp4Nibbles(data, w.cols);
    }
    blocks = w.cols / kQuantBlock;
  }

  void StartStrip(const PackedMatrix& w, int strip) {
    constexpr int64_t kStripBytes = kStripBlocks * kBlockBytes;
    const bool last = (strip + 1) * kStripBlocks >= blocks;
    jump = kPanels * w.panel_bytes;
    next = last ? jump - strip * kStripBytes : kStripBytes;
    header_lines = last ? static_cast<int>(Mxfp4NibblesAt(w.cols) / 64) : 0;
    for (int p = 0; p < kPanels; ++p) {
      const auto* at = reinterpret_cast<const __m128i*>(bases[p] + strip * kPanelRows);
      _mm512_store_si512(base[strip % 2][p],
                         _mm512_slli_epi32(_mm512_cvtepu8_epi32(_mm_load_si128(at)), 23));
    }
  }

  // 64 columns to int8. Columns past the end meet activations of zero, so they may be anything.
  void Unpack(int strip, int step) {
    for (int p = 0; p < kPanels; ++p) {
      for (int line = step; line < header_lines; line += kSteps) {
        _mm_prefetch(reinterpret_cast<const char*>(bases[p] + jump + line * 64), _MM_HINT_T1);
      }
      for (int half = 0; half < 2; ++half) {
        const int block = strip * kStripBlocks + step * 2 + half;
        if (block >= blocks) break;
        // To L2 only: L1 is full of weight tiles.
        UnpackBlock<FetchTo::kSecondCache>(shifts[p] + block * kPanelRows,
                                           nibbles[p] + block * kBlockBytes, next,
                                           tiles[step][p] + half * (kTileBytes / 2));
      }
    }
  }
};

// What the tiles left for the vectors: the integer sums of up to 16 tokens over one strip.
struct Sums {
  const int32_t* at = nullptr;  // [panel][hi, lo][token][row]
  float* y = nullptr;           // of the first token
  const float* scale = nullptr;
  const float* base = nullptr;  // [panel][row]
  int next = 0, end = 0;        // tokens still to be used
  bool first_strip = false;
};

template <int kPanels>
inline void UseSums(Sums& sums, int count, int64_t y_stride, int num_strips) {
  const int end = sums.next + count < sums.end ? sums.next + count : sums.end;
  for (int t = sums.next; t < end; ++t) {
    const __m512 scale = _mm512_set1_ps(sums.scale[t * num_strips]);
    for (int p = 0; p < kPanels; ++p) {
      const int32_t* at = sums.at + p * 2 * kTileInts + t * kPanelRows;
      const __m512i high = _mm512_slli_epi32(_mm512_load_si512(at), 8);
      const __m512i total = _mm512_add_epi32(high, _mm512_load_si512(at + kTileInts));
      const __m512 both = _mm512_mul_ps(_mm512_load_ps(sums.base + p * kPanelRows), scale);
      float* y = sums.y + t * y_stride + p * kPanelRows;
      const __m512 before = sums.first_strip ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
      _mm512_storeu_ps(y, _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), both, before));
    }
  }
  sums.next = end;
}

// Rows [begin, end) of the activations through one or two panels. The vectors work on the tokens
// before those that are in the tiles.
template <int kPanels>
void Product(const MatmulArgs& args, int panel, int begin, int end) {
  const Activations& x = *args.x;
  Weights<kPanels> weights;
  weights.Start(*args.w, panel);
  alignas(64) int32_t ints[kPanels * 2 * kTileInts];
  const int rows = x.m < kTileRows ? x.m : kTileRows;
  const int64_t stride = x.stride;
  Sums in_tiles, sums;  // the tokens in the tiles; those whose sums are in `ints`
  for (int c = 0; c < x.num_strips; ++c) {
    const int columns = x.cols - c * kStrip;
    const int steps = columns < kStrip ? (columns + kStep - 1) / kStep : kSteps;
    weights.StartStrip(*args.w, c);
    weights.Unpack(c, 0);
    for (int t = begin; t < end; t += kTileRows) {
      // The last tile reaches back over rows that are done rather than past the end.
      const int first = t + rows <= x.m ? t : x.m - rows;
      const int8_t* hi = x.hi + first * stride + c * kStrip;
      const int8_t* lo = x.lo + first * stride + c * kStrip;
      TileFence();
      SwapStep<2, kPanels>({hi, lo}, stride, weights.tiles[0], ints);
      sums = in_tiles;
      for (int k = 1; k < steps; ++k) {
        // The first tokens pay for unpacking, in the shadow of the tiles.
        if (t == begin) weights.Unpack(c, k);
        TileFence();
        SumStep<2, kPanels>({hi + k * kStep, lo + k * kStep}, stride, weights.tiles[k]);
        // Not in the first step: what a tile has just stored cannot be loaded yet.
        if (k > 1) UseSums<kPanels>(sums, 3, args.y_stride, x.num_strips);
      }
      TileFence();
      UseSums<kPanels>(sums, kTileRows, args.y_stride, x.num_strips);
      in_tiles = {ints,
                  args.y + first * args.y_stride + panel * kPanelRows,
                  x.scale + int64_t{first} * x.num_strips + c,
                  weights.base[c % 2][0],
                  t - first,
                  rows,
                  c == 0};
    }
  }
  StoreTiles<2, kPanels>(ints);
  TileFence();
  UseSums<kPanels>(in_tiles, kTileRows, args.y_stride, x.num_strips);
}

}  // namespace

void AmxMatmulMxfp4(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m;
  if (m == 0) return;
  _tile_loadconfig(&kShapes.of[m < kTileRows ? m : kTileRows]);
  for (int begin = 0; begin < m; begin += kBlockRows) {
    const int end = begin + kBlockRows < m ? begin + kBlockRows : m;
    for (int p = panel_begin; p < panel_end; p += 2) {
      const int last = p + 2 < panel_end ? p + 2 : panel_end;
      if (last - p == 2) {
        Product<2>(args, p, begin, end);
      } else {
        Product<1>(args, p, begin, end);
      }
      AmxFinishMxfp4(args, p, last, begin, end);
    }
  }
  _tile_release();
}

}  // namespace hearth
