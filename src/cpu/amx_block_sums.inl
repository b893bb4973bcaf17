// SPDX-License-Identifier: Apache-2.0
// Products on AMX with formats that have a scale per block of 32 columns, whatever their codes:
// each tile instruction sums one block and vectors take the sums over. 16 tokens by one panel keep
// their sixteen vectors of floats in registers for a whole chunk. Included after kernels_amx.h and
// panels.h, inside an unnamed namespace. A Format says how a panel is unpacked:
//   static constexpr bool kHasMin;
//   static void Unpack(const uint8_t* panel, int cols, int first_block, int blocks, Weights& out);

constexpr int kTile = kQuantBlock * kPanelRows;  // bytes of a block's weights
constexpr int kBlockRows = 128;                  // tokens that stay in L2 while the weights pass
constexpr ShapesByTokens kShapes = ShapesOfDepth(kQuantBlock);

// A chunk of one panel: signed weights, scales and minima as floats.
struct Weights {
  alignas(64) int8_t tiles[kChunkBlocks][kTile];
  alignas(64) float scales[kChunkBlocks][kPanelRows];
  alignas(64) float minima[kChunkBlocks][kPanelRows];
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

// What the vectors know of up to 16 tokens in a chunk.
struct TileTokens {
  float scales[kTileRows];
  float sums[kTileRows][kChunkBlocks];  // of each block, for minima

  template <bool kHasMin>
  void Load(const Activations& x, int first, int chunk, int blocks) {
    for (int t = 0; t < kTileRows; ++t) {
      const bool there = first + t < x.m;
      scales[t] = there ? x.scale[int64_t{first + t} * x.num_chunks + chunk] : 0.0f;
      if (!kHasMin || !there) continue;
      const int64_t at = int64_t{first + t} * x.num_blocks + chunk * kChunkBlocks;
      for (int b = 0; b < blocks; ++b) {
        sums[t][b] = static_cast<float>(256 * x.sum_hi[at + b] + x.sum_lo[at + b]);
      }
    }
  }
};

template <bool kHasMin>
inline void UseSums(const Sums& sums, const Weights& weights, int block, const TileTokens& tokens,
                    __m512 (&totals)[kTileRows]) {
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    const __m512i high = _mm512_load_si512(sums.high + t * kPanelRows);
    const __m512i low = _mm512_load_si512(sums.low + t * kPanelRows);
    const __m512 exact = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
    const __m512 scale = _mm512_set1_ps(tokens.scales[t]);
    totals[t] = _mm512_fmadd_ps(exact, _mm512_mul_ps(_mm512_load_ps(weights.scales[block]), scale),
                                totals[t]);
    if constexpr (kHasMin) {
      const __m512 minimum = _mm512_mul_ps(_mm512_load_ps(weights.minima[block]), scale);
      totals[t] = _mm512_fmadd_ps(_mm512_set1_ps(tokens.sums[t][block]), minimum, totals[t]);
    }
  }
}

// All blocks of a chunk, ascending.
template <bool kHasMin>
inline void SumChunk(const Weights& weights, int blocks, const int8_t* hi, const int8_t* lo,
                     int64_t stride, const TileTokens& tokens, __m512 (&totals)[kTileRows]) {
  Sums sums[2];
  SumBlock<0>(hi, lo, stride, weights.tiles[0]);
  for (int b = 0; b < blocks; b += 2) {
    int at = (b + 1) * kQuantBlock;
    if (b + 1 < blocks) SumBlock<1>(hi + at, lo + at, stride, weights.tiles[b + 1]);
    Store<0>(sums[0]);
    UseSums<kHasMin>(sums[0], weights, b, tokens, totals);
    if (b + 1 == blocks) return;
    at += kQuantBlock;
    if (b + 2 < blocks) SumBlock<0>(hi + at, lo + at, stride, weights.tiles[b + 2]);
    Store<1>(sums[1]);
    UseSums<kHasMin>(sums[1], weights, b + 1, tokens, totals);
  }
}

// Up to 16 tokens from `first` on, of which those before `from` are done, through one chunk.
template <bool kHasMin>
void Tokens(const MatmulArgs& args, const Weights& weights, int panel, int chunk, int blocks,
            int first, int from) {
  const Activations& x = *args.x;
  const int count = x.m < kTileRows ? x.m : kTileRows;
  TileTokens tokens;
  tokens.Load<kHasMin>(x, first, chunk, blocks);
  __m512 totals[kTileRows];
  float* y = args.y + first * args.y_stride + panel * kPanelRows;
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    const bool continues = chunk > 0 && t < count;
    totals[t] = continues ? _mm512_loadu_ps(y + t * args.y_stride) : _mm512_setzero_ps();
  }
  const int64_t at = int64_t{first} * x.stride + chunk * kChunk;
  SumChunk<kHasMin>(weights, blocks, x.hi + at, x.lo + at, x.stride, tokens, totals);
#pragma GCC unroll 16
  for (int t = 0; t < kTileRows; ++t) {
    if (first + t >= from && t < count) _mm512_storeu_ps(y + t * args.y_stride, totals[t]);
  }
}

// Rows [begin, end) of the activations through one panel.
template <class Format>
void Product(const MatmulArgs& args, int panel, int begin, int end) {
  const Activations& x = *args.x;
  const int all_blocks = args.w->cols / kQuantBlock;
  const uint8_t* data = args.w->data + panel * args.w->panel_bytes;
  Weights weights;
  for (int c = 0; c < x.num_chunks; ++c) {
    const int left = all_blocks - c * kChunkBlocks;
    const int blocks = left < kChunkBlocks ? left : kChunkBlocks;
    Format::Unpack(data, args.w->cols, c * kChunkBlocks, blocks, weights);
    TileFence();
    for (int t = begin; t < end; t += kTileRows) {
      // The last tokens reach back over rows that are done rather than past the end.
      const int first = t + kTileRows <= x.m ? t : (x.m < kTileRows ? 0 : x.m - kTileRows);
      Tokens<Format::kHasMin>(args, weights, panel, c, blocks, first, t);
    }
  }
  if (args.bias == nullptr) return;
  const __m512 bias = _mm512_loadu_ps(args.bias + panel * kPanelRows);
  for (int64_t t = begin; t < end; ++t) {
    float* y = args.y + t * args.y_stride + panel * kPanelRows;
    _mm512_storeu_ps(y, _mm512_add_ps(_mm512_loadu_ps(y), bias));
  }
}

template <class Format>
void Products(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m;
  if (m == 0) return;
  _tile_loadconfig(&kShapes.of[m < kTileRows ? m : kTileRows]);
  for (int begin = 0; begin < m; begin += kBlockRows) {
    const int end = begin + kBlockRows < m ? begin + kBlockRows : m;
    for (int p = panel_begin; p < panel_end; ++p) Product<Format>(args, p, begin, end);
  }
  _tile_release();
}
