// SPDX-License-Identifier: Apache-2.0
// What the AMX kernel files share: their products, the shape of the tiles, and the order between
// tiles and memory. Internal linkage but for the products.
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels.h"
namespace hearth {

// Any number of tokens; kernels_amx.cc says from how many on they are the faster ones. Those of
// blocks take one plane of activations or two.
void AmxMatmulMxfp4(const MatmulArgs& args, int panel_begin, int panel_end);
void AmxMatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end);
// Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL.
void AmxMatmulBlocks(const MatmulArgs& args, int panel_begin, int panel_end);
// One to kMostFewTokens tokens.
static constexpr int kMostFewTokens = 8;
void AmxMatmulMxfp4Few(const MatmulArgs& args, int panel_begin, int panel_end);
// One plane of activations.
void AmxMatmulMxfp4Fast(const MatmulArgs& args, int panel_begin, int panel_end);
// The end of an MXFP4 product for tokens [begin, end): spilled blocks, then the bias.
void AmxFinishMxfp4(const MatmulArgs& args, int panel_begin, int panel_end, int begin, int end);

// Tokens from which numerics `fast` takes tiles: where Q8 with two planes does. With one plane it
// was not measured where they cross.
static constexpr int kFewestOfOnePlane = 9;

static constexpr int kTileRows = 16;  // tokens of a tile
static constexpr int kTileInts = kTileRows * kPanelRows;
static constexpr int kTileBytes = 1024;  // of a full tile

// What LDTILECFG reads. Tiles 0 to 3 sum, [tokens][16 rows of weights]; 4 and 5 hold activations,
// [tokens][depth columns]; 6 and 7 weights, [depth / 4][16 rows of weights][4 columns].
struct alignas(64) TileShapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileShapes) == 64);

// One for each number of tokens up to 16; fewer rows are faster tiles.
struct ShapesByTokens {
  TileShapes of[kTileRows + 1];
};
static constexpr ShapesByTokens ShapesOfDepth(int depth) {
  ShapesByTokens shapes{};
  for (int tokens = 1; tokens <= kTileRows; ++tokens) {
    shapes.of[tokens].palette = 1;
    for (int i = 0; i < 8; ++i) {
      shapes.of[tokens].row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? depth : 64);
      shapes.of[tokens].rows[i] = static_cast<uint8_t>(i >= 6 ? depth / 4 : tokens);
    }
  }
  return shapes;
}

// Tile instructions are opaque to GCC 12, which therefore moves or drops stores that only a tile
// reads: this keeps memory accesses before it and after it where they are. For the same reason the
// shapes live in static memory.
static inline void TileFence() { __asm__ volatile("" ::: "memory"); }

}  // namespace hearth
