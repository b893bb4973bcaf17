// SPDX-License-Identifier: Apache-2.0
// Products with K-quants and IQ4_XS on AMX, for one and two planes of activations (kPlanes).
// Sub-blocks' integer scales are multiplied into the codes, so that tiles sum whole superblocks: in
// one plane of bytes where the products fit, else in two. Meanwhile vectors do the float steps of
// the tokens before, and unpack the next superblock.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_amx.h"
#include "cpu/kernels_parts.h"
#include "cpu/panels.h"
#include "cpu/panels_super.h"

namespace hearth {
namespace {

#include "cpu/amx_tile_steps.inl"
#include "cpu/avx512_super.inl"

constexpr int kGroups = 4;       // of 64 columns, one tile step each
constexpr int kBlockRows = 128;  // tokens that stay in L2 while the weights pass
// Fewer tokens are faster on the vectors of AVX-512, whose kernel unpacks once for eight.
constexpr int kFewestTokens = 9;
constexpr ShapesByTokens kShapes = ShapesOfDepth(64);

// Scale times code fits a byte: Q2_K 15 * 3, Q3_K -(-32 .. 31) * (-4 .. 3).
template <PackKind kKind>
constexpr bool kOnePlane = kKind == PackKind::kQ2K || kKind == PackKind::kQ3K;
// Q3_K's products reach 128: they are stored negated.
template <PackKind kKind>
constexpr bool kNegated = kKind == PackKind::kQ3K;
// Two tiles of weights per step: the planes of one panel, or two panels.
template <PackKind kKind>
constexpr int kPanels = kOnePlane<kKind> ? 2 : 1;

// Where 64 columns of a tile's tokens begin, the first token's.
template <int kPlanes>
struct Planes {
  const int8_t* at[kPlanes];
};

// A superblock of one or two panels, ready for tiles.
template <PackKind kKind>
struct Unit {
  alignas(64) int8_t tiles[kGroups][2][kTileBytes];
  alignas(64) float d[kPanels<kKind>][kPanelRows], dmin[kPanels<kKind>][kPanelRows];
  // Pairs of 16-bit minima: [sub-blocks / 2][row].
  alignas(64) int32_t min_pairs[kPanels<kKind>][8][kPanelRows];
};

// Even and odd columns times their scale: 16-bit products.
struct Products {
  __m512i even, odd;
};
template <PackKind kKind>
inline Products Multiply(__m512i codes, __m512i scale) {
  __m512i even = _mm512_and_si512(codes, _mm512_set1_epi16(255));
  __m512i odd = _mm512_srli_epi16(codes, 8);
  if constexpr (kCodeOffset<kKind> != 0) {
    const __m512i offset = _mm512_set1_epi16(kCodeOffset<kKind>);
    even = kNegated<kKind> ? _mm512_sub_epi16(offset, even) : _mm512_sub_epi16(even, offset);
    odd = kNegated<kKind> ? _mm512_sub_epi16(offset, odd) : _mm512_sub_epi16(odd, offset);
  }
  return {_mm512_mullo_epi16(even, scale), _mm512_mullo_epi16(odd, scale)};
}

inline __m512i LowBytes(const Products& p) {
  return _mm512_ternarylogic_epi32(p.even, _mm512_set1_epi16(255), _mm512_slli_epi16(p.odd, 8),
                                   0xea);
}
// What is left above the low bytes, which count as signed.
inline __m512i HighBytes(const Products& p) {
  const __m512i half = _mm512_set1_epi16(128);
  return _mm512_ternarylogic_epi32(_mm512_add_epi16(p.odd, half),
                                   _mm512_set1_epi16(static_cast<short>(0xff00)),
                                   _mm512_srli_epi16(_mm512_add_epi16(p.even, half), 8), 0xea);
}

// Group `g` of a panel's unit into the unit's tiles.
template <PackKind kKind>
void UnpackTiles(const uint8_t* from, int panel, int g, Unit<kKind>& to) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  __m512i codes[16];
  UnpackGroup<kKind>(from + kLayout.codes_at + g * kLayout.group_bytes, codes);
  const GroupScales<kKind> scales = ScalesOf<kKind>(from, g);
#pragma GCC unroll 16
  for (int q = 0; q < 16; ++q) {
    const __m512i one = scales.scale[q / kSteps<kKind>];
    const __m512i both = _mm512_mask_blend_epi16(0xaaaaaaaau, one, _mm512_slli_epi32(one, 16));
    const Products products = Multiply<kKind>(codes[q], both);
    if constexpr (kOnePlane<kKind>) {
      _mm512_store_si512(to.tiles[g][panel] + q * 64, LowBytes(products));
    } else {
      _mm512_store_si512(to.tiles[g][0] + q * 64, HighBytes(products));
      _mm512_store_si512(to.tiles[g][1] + q * 64, LowBytes(products));
    }
  }
  if constexpr (kLayout.has_min) {
#pragma GCC unroll 2
    for (int i = 0; i < kSubs<kKind> / 2; ++i) {
      _mm512_store_si512(to.min_pairs[panel][g * (kSubs<kKind> / 2) + i], scales.min_pair[i]);
    }
  }
  if (g > 0) return;
  _mm512_store_ps(to.d[panel], Factors(from, 0));
  _mm512_store_ps(to.dmin[panel], Factors(from, 1));
}

// Sums of one tile of tokens and one superblock, on their way to y.
template <PackKind kKind>
struct Sums {
  const Unit<kKind>* unit;  // null: nothing to do
  int n, panels;            // which superblock, of how many panels
  int first, next, end;     // the tile's first token; those of the tile that are still to do
};

// What a block of tokens has summed so far. Not in y: rows of y are often a power of two apart, so
// that a column of them falls into few sets of the caches.
template <PackKind kKind>
struct alignas(64) Totals {
  float at[kPanels<kKind>][kBlockRows][kPanelRows];
};

// The minima's part of kCount neighbouring tokens: each pair of minima is loaded once for all.
template <PackKind kKind, int kPlanes, int kCount>
inline void MinSums(const Unit<kKind>& unit, int panel, const Activations& x, int64_t token, int n,
                    __m512i (&out)[kCount]) {
  constexpr bool kSixteen = SuperLayoutOf(kKind).sub_cols == 16;
  constexpr int kAll = kSixteen ? 16 : 8;
  const int64_t stride = int64_t{x.num_blocks} * (kSixteen ? 2 : 1);
  const int16_t* hi =
      kPlanes == 2 ? (kSixteen ? x.sum16_hi : x.sum32_hi) + token * stride + n * kAll : nullptr;
  const int16_t* lo = (kSixteen ? x.sum16_lo : x.sum32_lo) + token * stride + n * kAll;
  __m512i high[kCount], low[kCount];
#pragma GCC unroll 4
  for (int t = 0; t < kCount; ++t) high[t] = low[t] = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int i = 0; i < kAll / 2; ++i) {
    const __m512i pair = _mm512_load_si512(unit.min_pairs[panel][i]);
#pragma GCC unroll 4
    for (int t = 0; t < kCount; ++t) {
      if constexpr (kPlanes == 2) {
        high[t] = _mm512_dpwssd_epi32(high[t], pair, Broadcast32(hi + t * stride + 2 * i));
      }
      low[t] = _mm512_dpwssd_epi32(low[t], pair, Broadcast32(lo + t * stride + 2 * i));
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < kCount; ++t) {
    out[t] = _mm512_add_epi32(_mm512_slli_epi32(high[t], 8), low[t]);
  }
}

// Tokens [t, t + kCount) of a tile. `ints` has, one after the other: the planes of activations with
// the first tile of weights, then with the second.
template <PackKind kKind, int kPlanes, int kCount>
inline void UseTokens(const Activations& x, const int32_t* ints, int t, int p,
                      const Sums<kKind>& sums, float (*totals)[kPanelRows]) {
  const Unit<kKind>& unit = *sums.unit;
  const int64_t token = sums.first + t;
  [[maybe_unused]] __m512i minima[kCount];
  if constexpr (SuperLayoutOf(kKind).has_min) {
    MinSums<kKind, kPlanes, kCount>(unit, p, x, token, sums.n, minima);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    const __m512 x_scale = _mm512_set1_ps(x.scale[(token + i) * x.num_strips + sums.n]);
    const int32_t* at = ints + p * kPlanes * kTileInts + (t + i) * kPanelRows;
    __m512i exact[kPlanes];
#pragma GCC unroll 2
    for (int plane = 0; plane < kPlanes; ++plane, at += kTileInts) {
      exact[plane] = _mm512_load_si512(at);
      if constexpr (!kOnePlane<kKind>) {
        exact[plane] = _mm512_add_epi32(_mm512_slli_epi32(exact[plane], 8),
                                        _mm512_load_si512(at + kPlanes * kTileInts));
      } else if constexpr (kNegated<kKind>) {
        exact[plane] = _mm512_sub_epi32(_mm512_setzero_si512(), exact[plane]);
      }
    }
    __m512 sum = sums.n == 0 ? _mm512_setzero_ps() : _mm512_load_ps(totals[i]);
    sum = AddExact(exact, _mm512_load_ps(unit.d[p]), x_scale, sum);
    if constexpr (SuperLayoutOf(kKind).has_min) {
      sum = TakeMinima(minima[i], _mm512_load_ps(unit.dmin[p]), x_scale, sum);
    }
    _mm512_store_ps(totals[i], sum);
  }
}

// Up to `count` more tokens.
template <PackKind kKind, int kPlanes>
inline void UseSums(const Activations& x, const int32_t* ints, int count, Sums<kKind>& sums,
                    int begin, Totals<kKind>& totals) {
  if (sums.unit == nullptr) return;
  const int stop = sums.next + count < sums.end ? sums.next + count : sums.end;
  for (int p = 0; p < (kOnePlane<kKind> ? sums.panels : 1); ++p) {
    // The tile may begin before the block of tokens, but nothing of that is still to do.
    float(*total)[kPanelRows] = totals.at[p] + (sums.first + sums.next - begin);
    int t = sums.next;
    for (; t + 4 <= stop; t += 4, total += 4)
      UseTokens<kKind, kPlanes, 4>(x, ints, t, p, sums, total);
    for (; t < stop; ++t, ++total) UseTokens<kKind, kPlanes, 1>(x, ints, t, p, sums, total);
  }
  sums.next = stop;
}

// Tokens [begin, end) of a panel, whose sums lie side by side, to their rows of y.
void StoreTotals(const MatmulArgs& args, int panel, int begin, int end,
                 const float (*totals)[kPanelRows]) {
  const float* bias = args.bias == nullptr ? nullptr : args.bias + panel * kPanelRows;
  for (int64_t t = begin; t < end; ++t) {
    __m512 sum = _mm512_load_ps(totals[t - begin]);
    // Not plus zero without a bias: that would turn -0 into 0.
    if (bias != nullptr) sum = _mm512_add_ps(sum, _mm512_loadu_ps(bias));
    _mm512_storeu_ps(args.y + t * args.y_stride + panel * kPanelRows, sum);
  }
}

// Rows [begin, end) of the activations through up to kPanels panels from `panel` on. Where the
// second is not wanted the first is summed twice.
template <PackKind kKind, int kPlanes>
void Product(const MatmulArgs& args, int panel, int panels, int begin, int end) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  const PackedMatrix& w = *args.w;
  const Activations& x = *args.x;
  const int units = w.cols / kSuper, rows = x.m < kTileRows ? x.m : kTileRows;
  Unit<kKind> buffers[2];
  Totals<kKind> totals;
  alignas(64) int32_t ints[2 * kPlanes * kTileInts];
  const auto unpack = [&](int n, int g) {
    if (n >= units) return;
    for (int p = 0; p < kPanels<kKind>; ++p) {
      const uint8_t* from = w.data + (panel + (p < panels ? p : 0)) * w.panel_bytes;
      UnpackTiles<kKind>(from + int64_t{n} * kLayout.unit_bytes, p, g, buffers[n % 2]);
    }
  };
  for (int g = 0; g < kGroups; ++g) unpack(0, g);
  Sums<kKind> in_tiles{}, sums{};
  for (int n = 0; n < units; ++n) {
    const Unit<kKind>& unit = buffers[n % 2];
    int unpacked = 0;  // groups of the next superblock
    for (int t = begin; t < end; t += kTileRows) {
      // The last tile reaches back over rows that are done rather than past the end.
      const int first = t + rows <= x.m ? t : x.m - rows;
      const int64_t at = int64_t{first} * x.stride + n * kSuper;
      const auto planes = [&](int g) {
        if constexpr (kPlanes == 2) {
          return Planes<2>{{x.hi + at + g * 64, x.lo + at + g * 64}};
        } else {
          return Planes<1>{{x.lo + at + g * 64}};
        }
      };
      TileFence();
      SwapStep(planes(0).at, x.stride, unit.tiles[0], ints);
      sums = in_tiles;
      for (int g = 1; g < kGroups; ++g) {
        TileFence();
        SumStep(planes(g).at, x.stride, unit.tiles[g]);
        // Not in the first step: what a tile has just stored cannot be loaded yet.
        if (g > 1) UseSums<kKind, kPlanes>(x, ints, 8, sums, begin, totals);
        // The buffer of the next superblock is free once the sums before were used.
        if (g == 3 && unpacked < kGroups && t > begin) unpack(n + 1, unpacked++);
      }
      TileFence();
      in_tiles = {&unit, n, panels, first, t - first, rows};
    }
    while (unpacked < kGroups) unpack(n + 1, unpacked++);
  }
  StoreTiles<kPlanes, 2>(ints);
  TileFence();
  UseSums<kKind, kPlanes>(x, ints, kTileRows, in_tiles, begin, totals);
  for (int p = 0; p < panels && p < kPanels<kKind>; ++p) {
    StoreTotals(args, panel + p, begin, end, totals.at[p]);
  }
}

template <PackKind kKind, int kPlanes>
void Tiles(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m;
  _tile_loadconfig(&kShapes.of[m < kTileRows ? m : kTileRows]);
  for (int begin = 0; begin < m; begin += kBlockRows) {
    const int end = begin + kBlockRows < m ? begin + kBlockRows : m;
    for (int p = panel_begin; p < panel_end; p += kPanels<kKind>) {
      const int panels = p + kPanels<kKind> <= panel_end ? kPanels<kKind> : 1;
      Product<kKind, kPlanes>(args, p, panels, begin, end);
    }
  }
  _tile_release();
}

template <PackKind kKind>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  if (args.x->m < kFewestTokens) {
    return Avx512Kernels().matmul[static_cast<int>(kKind)](args, panel_begin, panel_end);
  }
  Tiles<kKind, 2>(args, panel_begin, panel_end);
}

}  // namespace

void AddAmxSupers(KernelTable& table) noexcept {
  SuperKinds::ForEach([&]<PackKind kKind>() {
    table.matmul[static_cast<int>(kKind)] = Matmul<kKind>;
    table.fast.tiles[static_cast<int>(kKind)] = {Tiles<kKind, 1>, kFewestOfOnePlane};
  });
}

}  // namespace hearth
