// SPDX-License-Identifier: Apache-2.0
// MXFP4 products on AMX for few tokens, at the speed of memory: both halves of up to eight tokens
// are the sixteen rows of one tile, so that a step of 64 columns takes one tile product a panel.
// Weights and activations of a step are prepared while the step before it is summed, because a tile
// cannot load what has just been stored; three panels side by side keep memory busy.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_amx.h"
#include "cpu/kernels_amx_mxfp4.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

constexpr int kMostPanels = 3;
// Blocks between what is unpacked and what is asked of memory: 2 KB in each panel. Four more
// changed nothing, none at all loses a tenth.
constexpr int kAhead = 8;
constexpr ShapesByTokens kShapes = ShapesOfDepth(kStep);

// What one step's tiles are loaded from.
template <int kPanels>
struct alignas(64) Step {
  int8_t weights[kPanels][kTileBytes];
  int8_t tokens[kTileBytes];  // the high halves of all tokens, then the low ones
};

template <int kPanels>
class Product {
 public:
  Product(const MatmulArgs& args, int panel)
      : args_(args),
        x_(*args.x),
        panel_(panel),
        panels_(args.w->data + panel * args.w->panel_bytes),
        panel_bytes_(args.w->panel_bytes),
        shifts_at_(Mxfp4ShiftsAt(args.w->cols)),
        nibbles_at_(Mxfp4NibblesAt(args.w->cols)),
        blocks_(args.w->cols / kQuantBlock) {}

  void Run() {
    const int steps = (blocks_ + 1) / 2;
    Prepare(0, ring_[0]);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    int stored = -1;  // the strip whose sums are stored and not used yet
    for (int s = 0; s < steps; ++s) {
      if (s + 1 < steps) Prepare(s + 1, ring_[(s + 1) % 2]);
      TileFence();
      Sum(ring_[s % 2]);
      const bool ends = s % kSteps == kSteps - 1 || s + 1 == steps;
      // Two steps after they were stored, when they can be loaded, or when their place is needed.
      if (stored >= 0 && (ends || s % kSteps == 1)) {
        UseSums(stored);
        stored = -1;
      }
      if (!ends) continue;
      StoreSums();
      TileFence();
      stored = s / kSteps;
    }
    UseSums(stored);
  }

 private:
  [[gnu::always_inline]] void Prepare(int step, Step<kPanels>& out) const {
    for (int t = 0; t < x_.m; ++t) {
      const int64_t at = int64_t{t} * x_.stride + step * kStep;
      _mm512_store_si512(out.tokens + t * kStep, _mm512_loadu_si512(x_.hi + at));
      _mm512_store_si512(out.tokens + (x_.m + t) * kStep, _mm512_loadu_si512(x_.lo + at));
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      // Columns past the end meet activations of zero, so they may be anything.
      UnpackOne(panels_ + p * panel_bytes_, 2 * step, out.weights[p]);
      if (2 * step + 1 < blocks_) {
        UnpackOne(panels_ + p * panel_bytes_, 2 * step + 1, out.weights[p] + kTileBytes / 2);
      }
    }
  }

  // A block, asking memory for the one kAhead further on, which may lie in the panels after these,
  // and towards the end for a line of their headers.
  [[gnu::always_inline]] void UnpackOne(const uint8_t* panel, int block, int8_t* out) const {
    const int64_t jump = kPanels * panel_bytes_;
    const bool beyond = block + kAhead >= blocks_;
    const int64_t ahead =
        kAhead * kBlockBytes + (beyond ? jump - int64_t{blocks_} * kBlockBytes : 0);
    UnpackBlock<FetchTo::kFirstCache>(panel + shifts_at_ + block * kPanelRows,
                                      panel + nibbles_at_ + block * kBlockBytes, ahead, out);
    const int line = block - (blocks_ - static_cast<int>(nibbles_at_ / 64));
    if (line >= 0) {
      _mm_prefetch(reinterpret_cast<const char*>(panel + jump + line * 64), _MM_HINT_T0);
    }
  }

  [[gnu::always_inline]] static void Sum(const Step<kPanels>& step) {
    _tile_loadd(4, step.tokens, kStep);
    _tile_loadd(6, step.weights[0], 64);
    _tile_dpbssd(0, 4, 6);
    if constexpr (kPanels > 1) {
      _tile_loadd(7, step.weights[1], 64);
      _tile_dpbssd(1, 4, 7);
    }
    if constexpr (kPanels > 2) {
      _tile_loadd(6, step.weights[2], 64);
      _tile_dpbssd(2, 4, 6);
    }
  }

  [[gnu::always_inline]] void StoreSums() {
    _tile_stored(0, sums_[0], 64);
    _tile_zero(0);
    if constexpr (kPanels > 1) {
      _tile_stored(1, sums_[1], 64);
      _tile_zero(1);
    }
    if constexpr (kPanels > 2) {
      _tile_stored(2, sums_[2], 64);
      _tile_zero(2);
    }
  }

  void UseSums(int strip) const {
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* bases = Mxfp4Bases(panels_ + p * panel_bytes_) + strip * kPanelRows;
      const __m128i sixteen = _mm_load_si128(reinterpret_cast<const __m128i*>(bases));
      const __m512 base = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(sixteen), 23));
      for (int t = 0; t < x_.m; ++t) {
        const __m512i high = _mm512_load_si512(sums_[p] + t * kPanelRows);
        const __m512i low = _mm512_load_si512(sums_[p] + (x_.m + t) * kPanelRows);
        const __m512i exact = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
        const float scale = x_.scale[int64_t{t} * x_.num_strips + strip];
        float* y = args_.y + t * args_.y_stride + (panel_ + p) * kPanelRows;
        const __m512 before = strip == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(y);
        const __m512 both = _mm512_mul_ps(base, _mm512_set1_ps(scale));
        _mm512_storeu_ps(y, _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), both, before));
      }
    }
  }

  const MatmulArgs& args_;
  const Activations& x_;
  const int panel_;
  const uint8_t* const panels_;
  const int64_t panel_bytes_, shifts_at_, nibbles_at_;
  const int blocks_;
  Step<kPanels> ring_[2];
  alignas(64) int32_t sums_[kPanels][kTileInts];  // [panel][hi of all tokens, then lo][row]
};

}  // namespace

void AmxMatmulMxfp4Few(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m;
  if (m == 0) return;
  _tile_loadconfig(&kShapes.of[2 * m]);
  for (int p = panel_begin; p < panel_end;) {
    const int left = panel_end - p, panels = left < kMostPanels ? left : kMostPanels;
    if (panels == 3) {
      Product<3>(args, p).Run();
    } else if (panels == 2) {
      Product<2>(args, p).Run();
    } else {
      Product<1>(args, p).Run();
    }
    p += panels;
  }
  _tile_release();
  AmxFinishMxfp4(args, panel_begin, panel_end, 0, m);
}

}  // namespace hearth
