// SPDX-License-Identifier: Apache-2.0
// Steps of products whose tiles are full and sum many columns before they are stored. Tiles 0 and 1
// sum the first and second plane of activations with the first tile of weights, 2 and 3 with the
// second tile; those that there are are stored one after the other in that order. Included after
// kernels_amx.h, inside an unnamed namespace.

// 64 columns of up to 16 tokens, with one or two tiles of weights. The activations go around L1, or
// they would drive the weight tiles out of it.
template <int kPlanes, int kWeights>
inline void SumStep(const int8_t* const (&x)[kPlanes], int64_t stride,
                    const int8_t (&weights)[kWeights][kTileBytes]) {
  _tile_stream_loadd(4, x[0], stride);
  _tile_loadd(6, weights[0], 64);
  _tile_dpbssd(0, 4, 6);
  if constexpr (kWeights == 2) {
    _tile_loadd(7, weights[1], 64);
    _tile_dpbssd(2, 4, 7);
  }
  if constexpr (kPlanes == 2) {
    _tile_stream_loadd(5, x[1], stride);
    _tile_dpbssd(1, 5, 6);
    if constexpr (kWeights == 2) _tile_dpbssd(3, 5, 7);
  }
}

// The first step of new tokens: each sum of the tokens before goes to `out` just before its tile is
// needed, when it has long been finished. Stored all at once after their last step, they would hold
// up the loads behind them.
template <int kPlanes, int kWeights>
inline void SwapStep(const int8_t* const (&x)[kPlanes], int64_t stride,
                     const int8_t (&weights)[kWeights][kTileBytes], int32_t* out) {
  _tile_stream_loadd(4, x[0], stride);
  _tile_loadd(6, weights[0], 64);
  _tile_stored(0, out, 64);
  _tile_zero(0);
  _tile_dpbssd(0, 4, 6);
  if constexpr (kWeights == 2) {
    _tile_loadd(7, weights[1], 64);
    _tile_stored(2, out + kPlanes * kTileInts, 64);
    _tile_zero(2);
    _tile_dpbssd(2, 4, 7);
  }
  if constexpr (kPlanes == 2) {
    _tile_stream_loadd(5, x[1], stride);
    _tile_stored(1, out + kTileInts, 64);
    _tile_zero(1);
    _tile_dpbssd(1, 5, 6);
    if constexpr (kWeights == 2) {
      _tile_stored(3, out + 3 * kTileInts, 64);
      _tile_zero(3);
      _tile_dpbssd(3, 5, 7);
    }
  }
}

template <int kPlanes, int kWeights>
inline void StoreTiles(int32_t* out) {
  _tile_stored(0, out, 64);
  if constexpr (kPlanes == 2) _tile_stored(1, out + kTileInts, 64);
  if constexpr (kWeights == 2) {
    _tile_stored(2, out + kPlanes * kTileInts, 64);
    if constexpr (kPlanes == 2) _tile_stored(3, out + 3 * kTileInts, 64);
  }
}
