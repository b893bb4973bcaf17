// SPDX-License-Identifier: Apache-2.0
// Q8 products on AMX.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/amx_block_sums.inl"

// Turns the codes of the next strip into signed ones, a few lines at a time.
struct Q8Unpacker {
  const uint8_t* from = nullptr;
  int8_t* to = nullptr;
  int left = 0;  // lines

  void Start(const PackedMatrix& w, int panel, int strip, Codes& out) {
    const int blocks = w.cols / kQuantBlock - strip * kStripBlocks;
    from = w.data + panel * w.panel_bytes + Q8CodesAt(w.cols) + int64_t{strip} * sizeof(Codes);
    to = out.tiles[0];
    left = (blocks < kStripBlocks ? blocks : kStripBlocks) * kTile / 64;
  }
  [[gnu::always_inline]] void Lines(int count) {
    const __m512i flip = _mm512_set1_epi8(-128);
    for (int i = count < left ? count : left; i > 0; --i) {
      // To L2 only: about the strip after this one, for L1 is full.
      _mm_prefetch(reinterpret_cast<const char*>(from + sizeof(Codes)), _MM_HINT_T1);
      _mm512_store_si512(to, _mm512_xor_si512(_mm512_load_si512(from), flip));
      from += 64;
      to += 64;
      --left;
    }
  }
};

template <int kActPlanes>
struct Q8 {
  using Unpacker = Q8Unpacker;
  static constexpr int kPlanes = kActPlanes;
  static constexpr bool kHasMin = false;
  static constexpr int kScaleStride = 2 * kPanelRows * 2;
  static const uint8_t* Scales(const PackedMatrix& w, int panel, int strip) {
    const uint16_t* scales = Q8Scales(w.data + panel * w.panel_bytes);
    return reinterpret_cast<const uint8_t*>(scales + strip * kStripBlocks * kPanelRows);
  }
  static __m512 Scale(const uint8_t* at, int block) { return Widened(at + block * 2 * kPanelRows); }
};

}  // namespace

void AmxMatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end) {
  const auto products = args.x->planes == 2 ? Products<Q8<2>> : Products<Q8<1>>;
  products(args, panel_begin, panel_end);
}

}  // namespace hearth
