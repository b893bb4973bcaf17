// SPDX-License-Identifier: Apache-2.0
// Products with K-quants and IQ4_XS on VNNI: sixteen rows of a panel times one to eight tokens. A
// group of 64 columns is unpacked to bytes once for all tokens; with one token three panels run
// side by side, so that memory has enough to fetch.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"
#include "cpu/panels_super.h"

namespace hearth {
namespace {

#include "cpu/avx512_super.inl"

// Always inline: g++ 12 takes it for a function without effect and drops its calls.
[[gnu::always_inline]] inline void Prefetch(const uint8_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
}

// One token's activations and the sums of its sub-blocks: of two planes hi comes first, lo is last.
template <PackKind kKind, int kPlanes>
struct Token {
  Token(const Activations& x, int t) : scale(x.scale + int64_t{t} * x.num_strips) {
    constexpr bool kSixteen = SuperLayoutOf(kKind).sub_cols == 16;
    const int64_t at = int64_t{t} * x.num_blocks * (kSixteen ? 2 : 1);
    plane[kPlanes - 1] = x.lo + int64_t{t} * x.stride;
    sums[kPlanes - 1] = (kSixteen ? x.sum16_lo : x.sum32_lo) + at;
    if constexpr (kPlanes == 2) {
      plane[0] = x.hi + int64_t{t} * x.stride;
      sums[0] = (kSixteen ? x.sum16_hi : x.sum32_hi) + at;
    }
  }
  const int8_t* plane[kPlanes];
  const int16_t* sums[kPlanes];
  const float* scale;
};

// Sub-block `sub` of the whole row: what its sums start from, so that codes may be unsigned.
template <PackKind kKind, int kPlanes>
[[gnu::always_inline]] inline void StartOf(const Token<kKind, kPlanes>& x, int sub, int shift,
                                           __m512i (&start)[kPlanes]) {
  const int factor = -kCodeOffset<kKind> * (1 << shift);
#pragma GCC unroll 2
  for (int i = 0; i < kPlanes; ++i) {
    start[i] = kCodeOffset<kKind> == 0 ? _mm512_setzero_si512()
                                       : _mm512_set1_epi32(factor * x.sums[i][sub]);
  }
}

// One group of one panel into a token's exact sums.
template <PackKind kKind, int kPlanes>
[[gnu::always_inline]] inline void AddGroup(const __m512i (&w)[16],
                                            const GroupScales<kKind>& scales,
                                            const Token<kKind, kPlanes>& x, int column,
                                            __m512i (&exact)[kPlanes]) {
  constexpr int kQuads = kSteps<kKind>;
#pragma GCC unroll 4
  for (int s = 0; s < kSubs<kKind>; ++s) {
    __m512i sums[kPlanes];
    StartOf<kKind>(x, column / SuperLayoutOf(kKind).sub_cols + s, 0, sums);
#pragma GCC unroll 8
    for (int q = s * kQuads; q < (s + 1) * kQuads; ++q) {
#pragma GCC unroll 2
      for (int i = 0; i < kPlanes; ++i) {
        sums[i] = _mm512_dpbusd_epi32(sums[i], w[q], Broadcast32(x.plane[i] + column + 4 * q));
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kPlanes; ++i) {
      exact[i] = _mm512_add_epi32(exact[i], _mm512_mullo_epi32(sums[i], scales.scale[s]));
    }
  }
}

// What the minima of a unit take away, exact.
template <PackKind kKind, int kPlanes>
[[gnu::always_inline]] inline __m512i MinSum(const __m512i* min_pairs,
                                             const Token<kKind, kPlanes>& x, int unit) {
  constexpr int kAll = kSuper / SuperLayoutOf(kKind).sub_cols;
  __m512i sums[kPlanes];
#pragma GCC unroll 2
  for (int i = 0; i < kPlanes; ++i) sums[i] = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int pair = 0; pair < kAll / 2; ++pair) {
#pragma GCC unroll 2
    for (int i = 0; i < kPlanes; ++i) {
      const __m512i two = Broadcast32(x.sums[i] + unit * kAll + 2 * pair);
      sums[i] = _mm512_dpwssd_epi32(sums[i], min_pairs[pair], two);
    }
  }
  if constexpr (kPlanes == 1) return sums[0];
  return _mm512_add_epi32(_mm512_slli_epi32(sums[0], 8), sums[kPlanes - 1]);
}

// Step kStep and those after it of one group, one token: quad after quad, so that what is broadcast
// serves all panels at once.
template <PackKind kKind, int kPlanes, int kPanels, int kStep = 0>
[[gnu::always_inline]] inline void SumSteps(const uint8_t* codes, int64_t panel_bytes,
                                            const Token<kKind, kPlanes>& x, int column,
                                            __m512i (&sums)[kPanels][kSubs<kKind>][kPlanes]) {
  if constexpr (kStep < kSteps<kKind>) {
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      __m512i w[kSubs<kKind>];
      UnpackStep<kKind, kStep, true>(codes + p * panel_bytes, w);
#pragma GCC unroll 4
      for (int s = 0; s < kSubs<kKind>; ++s) {
        const int at = column + (s * kSteps<kKind> + kStep) * 4;
#pragma GCC unroll 2
        for (int i = 0; i < kPlanes; ++i) {
          sums[p][s][i] = _mm512_dpbusd_epi32(sums[p][s][i], w[s], Broadcast32(x.plane[i] + at));
        }
      }
    }
    SumSteps<kKind, kPlanes, kPanels, kStep + 1>(codes, panel_bytes, x, column, sums);
  }
}

// One group of several panels into the token's exact sums.
template <PackKind kKind, int kPlanes, int kPanels>
[[gnu::always_inline]] inline void AddLines(const uint8_t* codes, int64_t panel_bytes,
                                            const GroupScales<kKind> (&scales)[kPanels],
                                            const Token<kKind, kPlanes>& x, int column,
                                            __m512i (&exact)[kPanels][1][kPlanes]) {
  __m512i sums[kPanels][kSubs<kKind>][kPlanes];
#pragma GCC unroll 4
  for (int s = 0; s < kSubs<kKind>; ++s) {
    const int sub = column / SuperLayoutOf(kKind).sub_cols + s;
    StartOf<kKind>(x, sub, InPlaceShift<kKind>(s), sums[0][s]);
#pragma GCC unroll 3
    for (int p = 1; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int i = 0; i < kPlanes; ++i) sums[p][s][i] = sums[0][s][i];
    }
  }
  SumSteps<kKind, kPlanes, kPanels>(codes, panel_bytes, x, column, sums);
#pragma GCC unroll 3
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
    for (int s = 0; s < kSubs<kKind>; ++s) {
      const auto down = static_cast<unsigned>(InPlaceShift<kKind>(s));
      const __m512i scale = scales[p].scale[s];
#pragma GCC unroll 2
      for (int i = 0; i < kPlanes; ++i) {
        const __m512i dot = _mm512_srai_epi32(sums[p][s][i], down);
        exact[p][0][i] = _mm512_add_epi32(exact[p][0][i], _mm512_mullo_epi32(dot, scale));
      }
    }
  }
}

struct Place {
  int token, panel;
  int64_t jump;  // from a panel to the one its stream reads next
};

// Asks memory for what lies `ahead` bytes after group `g` of a unit, and for the header.
template <PackKind kKind>
[[gnu::always_inline]] inline void FetchGroup(const uint8_t* unit, int g, int64_t ahead) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  const uint8_t* at = unit + ahead + kLayout.codes_at + g * kLayout.group_bytes;
#pragma GCC unroll 12
  for (int i = 0; i < kLayout.group_bytes; i += 64) Prefetch(at + i);
  // The header has three to five lines for four groups.
  Prefetch(unit + ahead + g * 64);
  if (kLayout.codes_at > 256 && g == 3) Prefetch(unit + ahead + 256);
}

template <PackKind kKind, int kPlanes, int kTokens, int kPanels>
void Tile(const MatmulArgs& args, const Place& place) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  constexpr int kPairs = kSubs<kKind> / 2;
  using TokenOf = Token<kKind, kPlanes>;
  constexpr int kAhead = kLayout.unit_bytes > 3000 ? 1 : 2;  // units: 2.7 to 5.6 KB of a stream
  const PackedMatrix& w = *args.w;
  const uint8_t* panel = w.data + place.panel * w.panel_bytes;
  const int units = w.cols / kSuper;
  __m512 sum[kPanels][kTokens];
#pragma GCC unroll 8
  for (int i = 0; i < kPanels * kTokens; ++i) sum[i / kTokens][i % kTokens] = _mm512_setzero_ps();
  for (int n = 0; n < units; ++n) {
    const uint8_t* unit = panel + int64_t{n} * kLayout.unit_bytes;
    // Past the panel's end it is the stream's next panel.
    const int64_t ahead = n + kAhead < units
                              ? int64_t{kAhead} * kLayout.unit_bytes
                              : place.jump + int64_t{kAhead - units} * kLayout.unit_bytes;
    __m512i exact[kPanels][kTokens][kPlanes], mins[kPanels][4 * kPairs];
#pragma GCC unroll 8
    for (int i = 0; i < kPanels * kTokens; ++i) {
#pragma GCC unroll 2
      for (__m512i& plane : exact[i / kTokens][i % kTokens]) plane = _mm512_setzero_si512();
    }
#pragma GCC unroll 1
    for (int g = 0; g < 4; ++g) {
      const uint8_t* codes = unit + kLayout.codes_at + g * kLayout.group_bytes;
      GroupScales<kKind> scales[kPanels];
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        const uint8_t* at = unit + p * w.panel_bytes;
        FetchGroup<kKind>(at, g, ahead);
        scales[p] = ScalesOf<kKind>(at, g);
        if constexpr (kLayout.has_min) {
#pragma GCC unroll 2
          for (int i = 0; i < kPairs; ++i) mins[p][g * kPairs + i] = scales[p].min_pair[i];
        }
      }
      if constexpr (kTokens == 1) {
        AddLines<kKind, kPlanes, kPanels>(codes, w.panel_bytes, scales,
                                          TokenOf(*args.x, place.token), n * kSuper + g * 64,
                                          exact);
      } else {
        static_assert(kPanels == 1);
        __m512i group[16];
        UnpackGroup<kKind>(codes, group);
#pragma GCC unroll 8
        for (int t = 0; t < kTokens; ++t) {
          AddGroup<kKind, kPlanes>(group, scales[0], TokenOf(*args.x, place.token + t),
                                   n * kSuper + g * 64, exact[0][t]);
        }
      }
    }
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* at = unit + p * w.panel_bytes;
      const __m512 d = Factors(at, 0);
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) {
        const TokenOf x(*args.x, place.token + t);
        const __m512 x_scale = _mm512_set1_ps(x.scale[n]);
        __m512& y = sum[p][t];
        y = AddExact(exact[p][t], d, x_scale, y);
        if constexpr (kLayout.has_min) {
          y = TakeMinima(MinSum<kKind, kPlanes>(mins[p], x, n), Factors(at, 1), x_scale, y);
        }
      }
    }
  }
#pragma GCC unroll 3
  for (int p = 0; p < kPanels; ++p) {
    const int row = (place.panel + p) * kPanelRows;
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      __m512 y = sum[p][t];
      if (args.bias != nullptr) y = _mm512_add_ps(y, _mm512_loadu_ps(args.bias + row));
      _mm512_storeu_ps(args.y + (place.token + t) * args.y_stride + row, y);
    }
  }
}

// Panels once from memory, then all tokens while they are in cache.
template <PackKind kKind, int kPlanes>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  using TileFunction = void (*)(const MatmulArgs&, const Place&);
  constexpr int kMostTokens = 8;
  static constexpr TileFunction kOnePanel[kMostTokens] = {
      Tile<kKind, kPlanes, 1, 1>, Tile<kKind, kPlanes, 2, 1>, Tile<kKind, kPlanes, 3, 1>,
      Tile<kKind, kPlanes, 4, 1>, Tile<kKind, kPlanes, 5, 1>, Tile<kKind, kPlanes, 6, 1>,
      Tile<kKind, kPlanes, 7, 1>, Tile<kKind, kPlanes, 8, 1>};
  const int m = args.x->m;
  int p = panel_begin;
  if (m == 1) {
    const int64_t jump = 3 * args.w->panel_bytes;
    for (; p + 3 <= panel_end; p += 3) Tile<kKind, kPlanes, 1, 3>(args, {0, p, jump});
  }
  for (; p < panel_end; ++p) {
    for (int t = 0; t < m; t += kMostTokens) {
      const int tokens = m - t < kMostTokens ? m - t : kMostTokens;
      const bool last = t + tokens == m;
      kOnePanel[tokens - 1](args, {t, p, last ? args.w->panel_bytes : 0});
    }
  }
}

}  // namespace

template <>
void AddAvx512Supers<kVbmi>(KernelTable& table) noexcept {
  SuperKinds::ForEach([&]<PackKind kKind>() {
    table.matmul[static_cast<int>(kKind)] = Matmul<kKind, 2>;
    table.fast.matmul[static_cast<int>(kKind)] = Matmul<kKind, 1>;
  });
}

}  // namespace hearth
