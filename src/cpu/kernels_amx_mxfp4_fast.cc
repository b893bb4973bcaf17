// SPDX-License-Identifier: Apache-2.0
// MXFP4 products on AMX with one plane of activations. Their scale comes every 32 columns, so tiles
// of a block each take the place of those of a strip.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/kernels_amx_mxfp4.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/amx_block_sums.inl"

// A block at a time, as soon as its lines are asked for.
struct Mxfp4Unpacker {
  static constexpr int kBlockLines = kTile / 64;
  const uint8_t *shifts = nullptr, *nibbles = nullptr;
  int8_t* to = nullptr;
  int left = 0, asked = 0;  // blocks, lines

  void Start(const PackedMatrix& w, int panel, int strip, Codes& out) {
    const uint8_t* data = w.data + panel * w.panel_bytes;
    const int first = strip * kStripBlocks, blocks = w.cols / kQuantBlock - first;
    shifts = Mxfp4Shifts(data, w.cols) + first * kPanelRows;
    nibbles = Mxfp4Nibbles(data, w.cols) + first * kBlockBytes;
    to = out.tiles[0];
    left = blocks < kStripBlocks ? blocks : kStripBlocks;
    asked = 0;
  }
  [[gnu::always_inline]] void Lines(int count) {
    for (asked += count; asked >= kBlockLines && left > 0; asked -= kBlockLines, --left) {
      // To L2 only: about the strip after this one, for L1 is full.
      UnpackBlock<FetchTo::kSecondCache>(shifts, nibbles, kStripBlocks * kBlockBytes, to);
      shifts += kPanelRows;
      nibbles += kBlockBytes;
      to += kTile;
    }
  }
};

struct Mxfp4 {
  using Unpacker = Mxfp4Unpacker;
  static constexpr int kPlanes = 1;
  static constexpr bool kHasMin = false;
  static constexpr int kScaleStride = 0;  // of the whole strip
  static const uint8_t* Scales(const PackedMatrix& w, int panel, int strip) {
    return Mxfp4Bases(w.data + panel * w.panel_bytes) + strip * kPanelRows;
  }
  static __m512 Scale(const uint8_t* at, int /*block*/) {
    const __m128i bases = _mm_load_si128(reinterpret_cast<const __m128i*>(at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bases), 23));
  }
};

}  // namespace

void AmxMatmulMxfp4Fast(const MatmulArgs& args, int panel_begin, int panel_end) {
  MatmulArgs sums = args;
  sums.bias = nullptr;  // comes after the spilled blocks
  Products<Mxfp4>(sums, panel_begin, panel_end);
  AmxFinishMxfp4(args, panel_begin, panel_end, 0, args.x->m);
}

}  // namespace hearth
