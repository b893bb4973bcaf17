// SPDX-License-Identifier: Apache-2.0
// Tiles of K-quants and IQ4_XS. Included after tile.inl and panels_super.h, inside an unnamed
// namespace. Where products of bytes are no single instruction, unsigned codes times one plane add
// up in 16 bits as long as they fit, and the product with the scale widens them.

inline Vec LoadLine(const uint8_t* at) { return LoadVec(at); }
inline Vec Masked(Vec x, int mask) { return And(x, Spread(mask * 0x01010101)); }
inline Vec Select(Vec x, int mask, Vec rest) { return Or(Masked(x, mask), rest); }
// Left by so many bits, or right where negative. Bits that cross a byte are masked by the caller.
template <int kLeft>
inline Vec Shifted(Vec x) {
  if constexpr (kLeft > 0) return Left<kLeft>(x);
  if constexpr (kLeft < 0) return Right<-kLeft>(x);
  return x;
}
inline Vec LookUpIq4(Vec codes) {
  const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kIq4Codes));
  return LookUp(Quarters(_mm_add_epi8(values, _mm_set1_epi8(-128))), Masked(codes, 15));
}

#include "cpu/super_codes.inl"

// Without them a code of IQ4_XS, up to 240, goes in two: its upper and its lower half.
template <PackKind kKind>
constexpr int kCodeParts = !kDotsBytes && kKind == PackKind::kIq4Xs ? 2 : 1;
// Quads of a sub-block that are summed before its scale comes in: all of them, or as many as fit
// 16 bits, 2 * largest code * 128 each.
template <PackKind kKind>
constexpr int kRun = kDotsBytes                ? SuperLayoutOf(kKind).sub_cols / 4
                     : kKind == PackKind::kQ5K ? 4
                     : kKind == PackKind::kQ6K ? 2
                                               : SuperLayoutOf(kKind).sub_cols / 4;
template <PackKind kKind>
constexpr int kSubBlocks = kSuper / SuperLayoutOf(kKind).sub_cols;

// A superblock of a tile's rows.
template <PackKind kKind>
struct SuperPart {
  alignas(64) uint8_t codes[kCodeParts<kKind>][64][2][kVec];  // [quad]
  // As AddScaled takes them.
  alignas(64) int32_t scale[kCodeParts<kKind>][kSubBlocks<kKind>][2][kLanes];
  // Two sub-blocks side by side, 16 bits each: of minima, or of scales where codes have an offset.
  alignas(64) int32_t pair[kSubBlocks<kKind> / 2][2][kLanes];
  alignas(64) float d[2][kLanes], dmin[2][kLanes];
};

// Sub-blocks s and s + 1: scales, and minima where there are any.
struct TwoScales {
  Vec scale[2], min[2];
};
template <PackKind kKind>
[[gnu::always_inline]] inline TwoScales ScalesAt(const uint8_t* unit, int row, int sub) {
  const uint8_t* scales = unit + SuperLayoutOf(kKind).scales_at;
  if constexpr (kKind == PackKind::kQ4K || kKind == PackKind::kQ5K) {
    const uint8_t* words = scales + row * 4;
    Vec six;
    if (sub < 6) {
      six = LoadVec(words + sub / 2 * 64);
    } else {
      const Vec a = Right<24>(LoadVec(words)), b = Right<24>(LoadVec(words + 64));
      six = Or(a, Or(Left<8>(b), Left<16>(Right<24>(LoadVec(words + 128)))));
    }
    const Vec mask = Spread(63);
    return {{And(six, mask), And(Right<6>(six), mask)},
            {And(Right<12>(six), mask), And(Right<18>(six), mask)}};
  }
  const uint8_t* bytes = scales + sub * kPanelRows + row;
  const Vec first = WideSigned(bytes), second = WideSigned(bytes + kPanelRows);
  if constexpr (kKind == PackKind::kQ2K) {
    const Vec mask = Spread(15);
    return {{And(first, mask), And(second, mask)},
            {And(Right<4>(first), mask), And(Right<4>(second), mask)}};
  }
  return {{first, second}, {first, second}};
}
// Two values of 16 bits in each lane.
inline Vec Pair(Vec first, Vec second) { return Or(And(first, Spread(0xffff)), Left<16>(second)); }

// How AddScaled multiplies. Of Q4_K, with products of bytes, a plane's sums over four sub-blocks
// stay below 2^24, and so do all their parts: as floats they are exact, and a conversion and a
// fused multiply-add are less than the two steps of an integer product and an addition.
template <PackKind kKind>
constexpr bool kSumsFloats = kDotsBytes && kKind == PackKind::kQ4K;

template <PackKind kKind>
inline Vec ScaleForm(Vec scale) {
  if constexpr (kSumsFloats<kKind>) return BitsOfFloat(ToFloat(scale));
  return kDotsBytes ? scale : Pair(scale, scale);
}

template <PackKind kKind>
inline void UnpackSuper(const TileRows& rows, int64_t unit_at, SuperPart<kKind>& part) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  for (int v = 0; v < 2; ++v) {
    const int row = TileRows::FirstRow(v);
    const uint8_t* unit = rows.panels[v] + unit_at;
    for (int g = 0; g < 4; ++g) {
      Vec w[16];
      UnpackGroup<kKind>(unit + kLayout.codes_at + g * kLayout.group_bytes + row * 4, w);
#pragma GCC unroll 16
      for (int q = 0; q < 16; ++q) {
        if constexpr (kCodeParts<kKind> == 2) {
          StoreVec(part.codes[0][g * 16 + q][v], And(Right<4>(w[q]), Spread(0x0f0f0f0f)));
          StoreVec(part.codes[1][g * 16 + q][v], And(w[q], Spread(0x0f0f0f0f)));
        } else {
          StoreVec(part.codes[0][g * 16 + q][v], w[q]);
        }
      }
    }
    for (int s = 0; s < kSubBlocks<kKind>; s += 2) {
      const TwoScales two = ScalesAt<kKind>(unit, row, s);
      for (int i = 0; i < 2; ++i) {
        StoreVec(part.scale[kCodeParts<kKind> - 1][s + i][v], ScaleForm<kKind>(two.scale[i]));
        if constexpr (kCodeParts<kKind> == 2) {
          StoreVec(part.scale[0][s + i][v], ScaleForm<kKind>(Left<4>(two.scale[i])));
        }
      }
      StoreVec(part.pair[s / 2][v], Pair(two.min[0], two.min[1]));
    }
    StoreF(part.d[v], Halves(SuperFactors(unit) + row));
    if constexpr (kLayout.has_min) {
      StoreF(part.dmin[v], Halves(SuperFactors(unit) + kPanelRows + row));
    }
  }
}

// The sums of one plane of a superblock, [half of its sub-blocks][vector][token]: floats of exact
// integers, or integers, of which the first half has all.
template <int kTokens>
using PlaneSums = Vec[2][2][kTokens];

template <PackKind kKind, int kTokens>
[[gnu::always_inline]] inline void AddScaled(const Sums<kTokens>& sums,
                                             const int32_t (&scales)[2][kLanes], bool first,
                                             Vec (&to)[2][kTokens]) {
  Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
    const Vec scale = LoadVec(scales[v]);
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      const Vec before = first ? Spread(0) : to[v][t];
      if constexpr (kSumsFloats<kKind>) {
        to[v][t] = BitsOfFloat(FmaF(ToFloat(sums[v][t]), FloatOfBits(scale), FloatOfBits(before)));
      } else if constexpr (kDotsBytes) {
        to[v][t] = Add(before, Mul(sums[v][t], scale));
      } else {
        to[v][t] = before;
        AddDot<int16_t>(to[v][t], sums[v][t], scale);
      }
    });
  });
}

// kQuads quads times one plane: 32 bits a row, or (without products of bytes) two sums of 16.
template <int kQuads, int kTokens>
[[gnu::always_inline]] inline void SumQuads(const uint8_t* w, const int8_t* x, int64_t stride,
                                            Sums<kTokens>& sums) {
  if constexpr (kDotsBytes) {
    Clear<kTokens>(sums);
    AddWords<kTokens>(w, kQuads, x, stride, sums);
  } else {
    NarrowQuads<kQuads, kTokens>(w, x, stride, sums);
  }
}

// One plane of a superblock.
template <PackKind kKind, int kTokens>
[[gnu::always_inline]] inline void SumPlane(const SuperPart<kKind>& part, const int8_t* x,
                                            int64_t stride, PlaneSums<kTokens>& to) {
  constexpr int kSteps = 64 / kRun<kKind>;
  constexpr int kHalf = kSumsFloats<kKind> ? kSteps / 2 : kSteps;
#pragma GCC unroll 1
  for (int c = 0; c < kCodeParts<kKind>; ++c) {
#pragma GCC unroll 1
    for (int i = 0; i < kSteps; ++i) {
      Sums<kTokens> sums;
      const int quad = i * kRun<kKind>;
      SumQuads<kRun<kKind>, kTokens>(part.codes[c][quad][0], x + 4 * quad, stride, sums);
      AddScaled<kKind, kTokens>(sums, part.scale[c][quad * 4 / SuperLayoutOf(kKind).sub_cols],
                                c == 0 && i % kHalf == 0, to[i / kHalf]);
    }
  }
}

// What pairs of 16 bits come to: minima or scales times the sums of a plane's sub-blocks. Two
// chains of additions side by side.
template <PackKind kKind>
[[gnu::always_inline]] inline void SumPairs(const SuperPart<kKind>& part, const int16_t* sums,
                                            Vec (&out)[2]) {
  out[0] = out[1] = Spread(0);
  Unroll<kSubBlocks<kKind> / 2>([&](auto i) HEARTH_TILE_INLINE {
    const Vec two = Broadcast32(sums + 2 * i);
    AddDot<int16_t>(out[0], LoadVec(part.pair[i][0]), two);
    AddDot<int16_t>(out[1], LoadVec(part.pair[i][1]), two);
  });
}

// A plane's exact sums of one token as floats, rounded once.
template <PackKind kKind, int kTokens>
[[gnu::always_inline]] inline void PlaneFloats(const SuperPart<kKind>& part, int t,
                                               const int16_t* sums, const PlaneSums<kTokens>& plane,
                                               VecF (&out)[2]) {
  if constexpr (kSumsFloats<kKind>) {
    Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
      out[v] = AddF(FloatOfBits(plane[0][v][t]), FloatOfBits(plane[1][v][t]));
    });
  } else if constexpr (kCodeOffset<kKind> != 0) {
    constexpr int kBits = std::countr_zero(static_cast<unsigned>(kCodeOffset<kKind>));
    static_assert(kCodeOffset<kKind> == 1 << kBits);
    Vec pairs[2];
    SumPairs<kKind>(part, sums, pairs);
    Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
      out[v] = ToFloat(Sub(plane[0][v][t], Left<kBits>(pairs[v])));
    });
  } else {
    Unroll<2>([&](auto v) HEARTH_TILE_INLINE { out[v] = ToFloat(plane[0][v][t]); });
  }
}

// The float steps of a superblock for one token; the last plane is lo, before it comes hi.
template <PackKind kKind, int kPlanes, int kTokens>
[[gnu::always_inline]] inline void FinishToken(const Activations& x, const SuperPart<kKind>& part,
                                               int n, int64_t token, int t,
                                               const PlaneSums<kTokens> (&planes)[kPlanes],
                                               float* y, int vectors) {
  constexpr bool kSixteen = SuperLayoutOf(kKind).sub_cols == 16;
  const int64_t block = token * x.num_blocks + n * 8;
  const VecF x_scale = SpreadF(x.scale[token * x.num_strips + n]);
  VecF floats[kPlanes][2];
  Vec minima[kPlanes][2];
  Unroll<kPlanes>([&](auto plane) HEARTH_TILE_INLINE {
    constexpr bool kHigh = plane + 1 < kPlanes;
    const int16_t* sums = kSixteen ? (kHigh ? x.sum16_hi : x.sum16_lo) + 2 * block
                                   : (kHigh ? x.sum32_hi : x.sum32_lo) + block;
    PlaneFloats<kKind, kTokens>(part, t, sums, planes[plane], floats[plane]);
    if constexpr (SuperLayoutOf(kKind).has_min) SumPairs<kKind>(part, sums, minima[plane]);
  });
  Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
    if (v >= vectors) return;
    VecF sum = n == 0 ? SpreadF(0.0f) : LoadF(y + v * kLanes);
    const VecF scale = MulF(LoadF(part.d[v]), x_scale);
    if constexpr (kPlanes == 2) sum = FmaF(floats[0][v], MulF(SpreadF(256.0f), scale), sum);
    sum = FmaF(floats[kPlanes - 1][v], scale, sum);
    if constexpr (SuperLayoutOf(kKind).has_min) {
      Vec min = minima[kPlanes - 1][v];
      if constexpr (kPlanes == 2) min = Add(Left<8>(minima[0][v]), min);
      sum = MinusProduct(ToFloat(min), MulF(LoadF(part.dmin[v]), x_scale), sum);
    }
    StoreF(y + v * kLanes, sum);
  });
}

// Unit n of the tile's rows times kTokens tokens from `token` on.
template <PackKind kKind, int kPlanes, int kTokens>
[[gnu::always_inline]] inline void SuperTile(const MatmulArgs& args, const SuperPart<kKind>& part,
                                             int n, int token, float* y, int vectors) {
  const Activations& x = *args.x;
  const int64_t at = int64_t{token} * x.stride + n * kSuper;
  PlaneSums<kTokens> planes[kPlanes];
  if constexpr (kPlanes == 2) SumPlane<kKind, kTokens>(part, x.hi + at, x.stride, planes[0]);
  SumPlane<kKind, kTokens>(part, x.lo + at, x.stride, planes[kPlanes - 1]);
#pragma GCC unroll 1
  for (int t = 0; t < kTokens; ++t) {
    FinishToken<kKind, kPlanes, kTokens>(x, part, n, token + t, t, planes, y + t * args.y_stride,
                                         vectors);
  }
}

template <PackKind kKind, int kPlanes>
void SuperTiles(const MatmulArgs& args, int panel_begin, int panel_end) {
  constexpr int kUnitBytes = SuperLayoutOf(kKind).unit_bytes;
  const PackedMatrix& w = *args.w;
  const int units = w.cols / kSuper, m = args.x->m;
  SuperPart<kKind> part;
  for (int n = 0; n < units; ++n) {
    for (int p = panel_begin; p < panel_end; p += kTilePanels) {
      const TileRows rows(w, p, panel_end);
      UnpackSuper<kKind>(rows, int64_t{n} * kUnitBytes, part);
      const bool last = p + kTilePanels >= panel_end;
      const int panel = last ? panel_begin : p + kTilePanels, unit = last ? n + 1 : n;
      NextPart next(w.data + panel * w.panel_bytes + int64_t{unit} * kUnitBytes,
                    unit < units ? kUnitBytes : 0, w.panel_bytes,
                    rows.vectors == 2 ? kTilePanels : 1, NumTiles(m));
      ForTileTokens(m, [&]<int kTokens>(std::integral_constant<int, kTokens>, int t) {
        next.Share();
        SuperTile<kKind, kPlanes, kTokens>(
            args, part, n, t, args.y + t * args.y_stride + p * kPanelRows, rows.vectors);
      });
    }
  }
}

template <PackKind kKind, int kPlanes>
void MatmulSuper(const MatmulArgs& all, int panel_begin, int panel_end) {
  ForRows(all, [&](const MatmulArgs& args) {
    SuperTiles<kKind, kPlanes>(args, panel_begin, panel_end);
    AddBias(args, panel_begin, panel_end);
  });
}
