// SPDX-License-Identifier: Apache-2.0
// The most int8 products a second that AMX gives: whole tiles, registers only, four sums in flight
// (a product starts every 16 cycles and takes 52).
#include "cpu/kernels_amx.h"
#include "cpu/roofline.h"

namespace hearth {

int32_t RepeatTilesAmx(int64_t rounds) {
  static constexpr ShapesByTokens kShapes = ShapesOfDepth(64);
  static_assert(kTileOps == int64_t{2} * kTileInts * 64 * 16);
  alignas(64) int8_t values[kTileRows * 64];
  alignas(64) int32_t sums[kTileInts];
  for (int i = 0; i < kTileRows * 64; ++i) values[i] = static_cast<int8_t>(i * 37 % 251 - 125);
  _tile_loadconfig(&kShapes.of[kTileRows]);
  TileFence();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, values, 64);
  _tile_loadd(5, values, 64);
  _tile_loadd(6, values, 64);
  _tile_loadd(7, values, 64);
  for (int64_t i = 0; i < rounds; ++i) {
    for (int j = 0; j < 4; ++j) {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 5, 6);
      _tile_dpbssd(2, 4, 7);
      _tile_dpbssd(3, 5, 7);
    }
  }
  _tile_stored(0, sums, 64);
  TileFence();
  const int32_t first = sums[0];
  _tile_stored(3, sums, 64);
  TileFence();
  _tile_release();
  return first + sums[kTileInts - 1];
}

}  // namespace hearth
