// SPDX-License-Identifier: Apache-2.0
// Tiles of numerics `fast` for formats with a factor per block of 32, which the activations have as
// well: bytes of weights times one plane. Included after tile.inl and tile_block_codes.inl, inside
// an unnamed namespace.

// Where products of bytes are no single instruction, products of unsigned codes add up in 16 bits
// while they fit. Weights that use all of a byte have no room for that: both sides are widened, for
// that takes no more steps than signs, bytes and joining do.

constexpr int kByteBlocks = kStripBlocks;  // of a part: up to 18 KB

template <PackKind kKind>
constexpr bool kIsMxfp4 = kKind == PackKind::kMxfp4;
// Weights that use all of a byte, where products of bytes are no single instruction.
template <PackKind kKind>
constexpr bool kFullBytes = !kDotsBytes && (kKind == PackKind::kQ8 || kKind == PackKind::kIq4Nl);
// What is added to weights so that they are unsigned: to those of MXFP4 after their shift, or
// before it where it is the sum that is shifted.
template <PackKind kKind>
constexpr int kByteOffset = kFullBytes<kKind>  ? 0
                            : !kIsMxfp4<kKind> ? kTraitsOf<kKind>.offset
                            : kDotsBytes       ? 96
                                               : 12;
// Quads whose products fit 16 bits together, 2 * largest code * 127 each.
template <PackKind kKind>
constexpr int kByteRun = kIsMxfp4<kKind> || kTraitsOf<kKind>.has_fifth ? 4 : 8;

inline Vec SpreadByte(int value) {
  return Spread(static_cast<int32_t>(0x01010101u * static_cast<uint32_t>(value)));
}

// Blocks of a tile's rows.
template <PackKind kKind>
struct BytesPart {
  static constexpr int kWords = kFullBytes<kKind> ? 16 : 8;  // of a block
  static constexpr int kMinima = kTraitsOf<kKind>.has_min ? kByteBlocks : 1;
  static constexpr int kShifts = kIsMxfp4<kKind> && !kDotsBytes ? kByteBlocks : 1;
  alignas(64) uint8_t w[kByteBlocks][kWords][2][kVec];
  alignas(64) float factor[kByteBlocks][2][kLanes];
  alignas(64) float minimum[kMinima][2][kLanes];
  alignas(64) int32_t shift[kShifts][2][kLanes];
};

[[gnu::always_inline]] inline void UnpackMxfp4Bytes(const uint8_t* panel, int cols, int b, int v,
                                                    int place, BytesPart<PackKind::kMxfp4>& part) {
  const int row = TileRows::FirstRow(v);
  const uint8_t* nibbles = Mxfp4Nibbles(panel, cols) + b * 256 + row * 4;
  const Vec shift = Right<4>(WideBytes(Mxfp4Shifts(panel, cols) + b * kPanelRows + row));
  const Vec rest = SubBytes(Spread(0x60606060), LeftBy(Spread(0x0c0c0c0c), shift));
  const Vec table =
      Quarters(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
#pragma GCC unroll 8
  for (int quad = 0; quad < 8; ++quad) {
    const Vec raw = LoadVec(nibbles + quad / 2 * 64);
    const Vec index = And(quad % 2 == 0 ? raw : Right<4>(raw), Spread(0x0f0f0f0f));
    const Vec codes = LookUp(table, index);
    StoreVec(part.w[place][quad][v], kDotsBytes ? AddBytes(LeftBy(codes, shift), rest) : codes);
  }
  if constexpr (!kDotsBytes) StoreVec(part.shift[place][v], shift);
  const Vec bases = WideBytes(Mxfp4Bases(panel) + b / kStripBlocks * kPanelRows + row);
  StoreF(part.factor[place][v], FloatOfBits(Left<23>(bases)));
}

// Block b of the panel, one vector of the two.
template <PackKind kKind>
[[gnu::always_inline]] inline void UnpackBytes(const uint8_t* panel, int cols, int b, int v,
                                               int place, BytesPart<kKind>& part) {
  if constexpr (kIsMxfp4<kKind>) {
    UnpackMxfp4Bytes(panel, cols, b, v, place, part);
  } else {
    const int row = TileRows::FirstRow(v);
    const uint8_t* at = panel + CodesOf<kKind>(cols) + b / 2 * kPairBytes<kKind>;
#pragma GCC unroll 8
    for (int line = 0; line < 8; ++line) {
      const Vec codes = CodesLine<kKind>(at, line, b % 2, row);
      if constexpr (kFullBytes<kKind>) {
        const WideLine wide = Widen(codes, Spread(kTraitsOf<kKind>.offset * 0x10001));
        StoreVec(part.w[place][2 * line][v], wide.first);
        StoreVec(part.w[place][2 * line + 1][v], wide.second);
      } else {
        StoreVec(part.w[place][line][v], codes);
      }
    }
    StoreF(part.factor[place][v], FactorsAt<kKind>(panel, at, b, row));
    if constexpr (kTraitsOf<kKind>.has_min) {
      StoreF(part.minimum[place][v], Halves(MinimaOf(at) + b % 2 * kPanelRows + row));
    }
  }
}

// Where a range's values are: bytes, or widened.
template <PackKind kKind>
using ByteValue = std::conditional_t<kFullBytes<kKind>, int16_t, int8_t>;

// The exact sums of a block. `start` takes away what the weights' offset adds, [token].
template <PackKind kKind, int kTokens>
[[gnu::always_inline]] inline void SumBytes(const BytesPart<kKind>& part, int b,
                                            const ByteValue<kKind>* x, int64_t stride,
                                            const int32_t* start, Sums<kTokens>& sums) {
  if constexpr (kDotsBytes) {
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      sums[0][t] = sums[1][t] = kByteOffset<kKind> == 0 ? Spread(0) : Broadcast32(start + t);
    });
    AddWords<kTokens>(part.w[b][0][0], 8, x, stride, sums);
  } else if constexpr (kFullBytes<kKind>) {
    Clear<kTokens>(sums);
    AddWords<kTokens>(part.w[b][0][0], 16, x, stride, sums);
  } else {
    const Vec ones = Spread(0x10001);
    constexpr int kRun = kByteRun<kKind>;
    Sums<kTokens> narrow[8 / kRun];
    Unroll<8 / kRun>([&](auto i) HEARTH_TILE_INLINE {
      NarrowQuads<kRun, kTokens>(part.w[b][i * kRun][0], x + 4 * kRun * i, stride, narrow[i]);
      Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
        Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
          if constexpr (i == 0) sums[v][t] = Spread(0);
          AddDot<int16_t>(sums[v][t], narrow[i][v][t], ones);
        });
      });
    });
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
        if constexpr (kByteOffset<kKind> != 0) sums[v][t] = Add(sums[v][t], Broadcast32(start + t));
        if constexpr (kIsMxfp4<kKind>) sums[v][t] = LeftBy(sums[v][t], LoadVec(part.shift[b][v]));
      });
    });
  }
}

// Blocks [begin, end) of a row, and what they need of each token.
template <PackKind kKind>
struct BytesRange {
  static constexpr int kWide = kFullBytes<kKind> ? kByteBlocks * kQuantBlock : 0;
  int begin, end;
  alignas(64) int16_t wide[kWide > 0 ? kMostRows : 1][kWide > 0 ? kWide : 1];
  alignas(64) float x_scale[kByteBlocks][kMostRows];
  alignas(64) float x_sum[kByteBlocks][kMostRows];  // of the block's activations, for minima
  alignas(64) int32_t start[kByteBlocks][kMostRows];
};
template <PackKind kKind>
inline void TurnBytes(const Activations& x, BytesRange<kKind>& range) {
  for (int t = 0; t < x.m; ++t) {
    if constexpr (kFullBytes<kKind>) {
      const int8_t* from = x.lo + int64_t{t} * x.stride + range.begin * kQuantBlock;
      for (int i = 0; i < (range.end - range.begin) * kQuantBlock; i += 2 * kLanes) {
        StoreVec(range.wide[t] + i, WidePairs(from + i));
      }
    }
    const float* scale = x.scale + int64_t{t} * x.num_strips;
    const int32_t* sum = x.sum_lo + int64_t{t} * x.num_blocks;
    for (int b = range.begin; b < range.end; ++b) {
      const int place = b - range.begin;
      range.x_scale[place][t] = scale[b];
      if constexpr (kByteOffset<kKind> != 0) range.start[place][t] = -kByteOffset<kKind> * sum[b];
      if constexpr (kTraitsOf<kKind>.has_min) range.x_sum[place][t] = static_cast<float>(sum[b]);
    }
  }
}

template <PackKind kKind, int kTokens>
[[gnu::always_inline]] inline void BytesTile(const MatmulArgs& args, const BytesPart<kKind>& part,
                                             const BytesRange<kKind>& range, int token, float* y,
                                             int vectors) {
  const Activations& x = *args.x;
  const ByteValue<kKind>* values;
  int64_t stride = x.stride;
  if constexpr (kFullBytes<kKind>) {
    values = range.wide[token];
    stride = BytesRange<kKind>::kWide;
  } else {
    values = x.lo + int64_t{token} * stride + range.begin * kQuantBlock;
  }
  TileFloats<kTokens> floats;
  floats.Read(y, args.y_stride, vectors, range.begin == 0);
#pragma GCC unroll 1
  for (int b = 0; b < range.end - range.begin; ++b) {
    Sums<kTokens> sums;
    SumBytes<kKind, kTokens>(part, b, values + b * kQuantBlock, stride, range.start[b] + token,
                             sums);
    floats.Add(sums, part.factor[b], range.x_scale[b] + token);
    if constexpr (kTraitsOf<kKind>.has_min) {
      floats.AddMinima(range.x_sum[b] + token, part.minimum[b], range.x_scale[b] + token);
    }
  }
  floats.Write(y, args.y_stride, vectors);
}

// Where block b of a panel lies, and how many bytes a pair of blocks takes.
template <PackKind kKind>
inline int64_t BytesAt(int cols, int b) {
  if constexpr (kIsMxfp4<kKind>) return Mxfp4NibblesAt(cols) + b * 256;
  return CodesOf<kKind>(cols) + b / 2 * kPairBytes<kKind>;
}
template <PackKind kKind>
constexpr int64_t kBytesOfPair = kIsMxfp4<kKind> ? 512 : kPairBytes<kKind>;

template <PackKind kKind>
void BytesTiles(const MatmulArgs& args, int panel_begin, int panel_end) {
  const PackedMatrix& w = *args.w;
  const Activations& x = *args.x;
  const int blocks = w.cols / kQuantBlock;
  BytesPart<kKind> part;
  BytesRange<kKind> range;
  for (range.begin = 0; range.begin < blocks; range.begin = range.end) {
    range.end = range.begin + kByteBlocks < blocks ? range.begin + kByteBlocks : blocks;
    TurnBytes<kKind>(x, range);
    for (int p = panel_begin; p < panel_end; p += kTilePanels) {
      const TileRows rows(w, p, panel_end);
      for (int b = range.begin; b < range.end; ++b) {
        for (int v = 0; v < 2; ++v) {
          UnpackBytes<kKind>(rows.panels[v], w.cols, b, v, b - range.begin, part);
        }
      }
      // The next panels' same blocks, or this call's first panels' next ones.
      const bool last = p + kTilePanels >= panel_end;
      const int panel = last ? panel_begin : p + kTilePanels;
      const int ahead = last ? range.end : range.begin;
      NextPart next(w.data + panel * w.panel_bytes + BytesAt<kKind>(w.cols, ahead),
                    ahead < blocks ? (range.end - range.begin + 1) / 2 * kBytesOfPair<kKind> : 0,
                    w.panel_bytes, rows.vectors == 2 ? kTilePanels : 1, NumTiles(x.m));
      ForTileTokens(x.m, [&]<int kTokens>(std::integral_constant<int, kTokens>, int t) {
        next.Share();
        BytesTile<kKind, kTokens>(args, part, range, t, args.y + t * args.y_stride + p * kPanelRows,
                                  rows.vectors);
      });
    }
  }
}

#include "cpu/spills.inl"

template <PackKind kKind>
void MatmulBytes(const MatmulArgs& all, int panel_begin, int panel_end) {
  ForRows(all, [&](const MatmulArgs& args) {
    BytesTiles<kKind>(args, panel_begin, panel_end);
    if constexpr (kIsMxfp4<kKind>) {
      AddSpills(args, panel_begin * kPanelRows, panel_end * kPanelRows);
    }
    AddBias(args, panel_begin, panel_end);
  });
}
