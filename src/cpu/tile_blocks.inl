// SPDX-License-Identifier: Apache-2.0
// Tiles of MXFP4, of Q8 and of the formats with a factor per block of 32, times two planes.
// Included after tile.inl and tile_block_codes.inl, inside an unnamed namespace.

// A token's scales of one strip, [token].
inline void TurnScales(const Activations& x, int strip, float* out) {
  for (int t = 0; t < x.m; ++t) out[t] = x.scale[int64_t{t} * x.num_strips + strip];
}

// ---- MXFP4 --------------------------------------------------------------------------------------

// A strip of a tile's rows: bytes plus 96 where products of bytes are one instruction, else whole
// weights of 16 bits.
constexpr int kMxfp4Bytes = kDotsBytes ? 1 : 2;
struct Mxfp4Part {
  alignas(64) uint8_t w[int64_t{kStrip} * kMxfp4Bytes * 2 * kLanes];
  float base[2][kLanes];
};

// Rows of one block, one vector of the two, to `out`, which has [word][2 vectors].
[[gnu::always_inline]] inline void UnpackMxfp4(const uint8_t* shifts, const uint8_t* nibbles,
                                               uint8_t* out) {
  const Vec table =
      Quarters(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  const Vec nibble = Spread(0x0f0f0f0f), shift = Right<4>(WideBytes(shifts));
  // What the shift makes of the table's 12 becomes 96; for 16 bits it is taken away before.
  const Vec rest = SubBytes(Spread(0x60606060), LeftBy(Spread(0x0c0c0c0c), shift));
  const Vec factor = LeftBy(Spread(0x10001), shift), twelve = Spread(0xc000c);
#pragma GCC unroll 4
  for (int line = 0; line < 4; ++line) {
    const Vec raw = LoadVec(nibbles + line * 64);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Vec codes = LookUp(table, And(half == 0 ? raw : Right<4>(raw), nibble));
      uint8_t* at = out + (line * 2 + half) * 2 * kVec * kMxfp4Bytes;
      if constexpr (kDotsBytes) {
        StoreVec(at, AddBytes(LeftBy(codes, shift), rest));
      } else {
        const WideLine wide = Widen(codes, twelve);
        StoreVec(at, MulPairs(wide.first, factor));
        StoreVec(at + 2 * kVec, MulPairs(wide.second, factor));
      }
    }
  }
}

inline void UnpackMxfp4Part(const TileRows& rows, int cols, int strip, int blocks,
                            Mxfp4Part& part) {
  for (int v = 0; v < 2; ++v) {
    const uint8_t* panel = rows.panels[v];
    const int row = TileRows::FirstRow(v), first = strip * kStripBlocks;
    for (int b = 0; b < blocks; ++b) {
      UnpackMxfp4(Mxfp4Shifts(panel, cols) + (first + b) * kPanelRows + row,
                  Mxfp4Nibbles(panel, cols) + (first + b) * 256 + row * 4,
                  part.w + (b * 8 * kMxfp4Bytes * 2 + v) * kVec);
    }
    const Vec bases = WideBytes(Mxfp4Bases(panel) + strip * kPanelRows + row);
    StoreF(part.base[v], FloatOfBits(Left<23>(bases)));
  }
}

// The exact sums of a part from bytes: plane after plane into the same registers, the first times
// 256. `start` takes away what the weights' offset adds.
template <int kPlanes, int kTokens>
[[gnu::always_inline]] inline void SumPlanes(const uint8_t* w, int quads,
                                             const int8_t* const (&planes)[kPlanes], int64_t stride,
                                             const int32_t* start, Sums<kTokens>& sums) {
  Clear<kTokens>(sums);
  Unroll<kPlanes>([&](auto plane) HEARTH_TILE_INLINE {
    if constexpr (plane > 0) {
      Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
        sums[0][t] = Left<8>(sums[0][t]);
        sums[1][t] = Left<8>(sums[1][t]);
      });
    }
    if constexpr (plane == kPlanes - 1) {
      Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
        const Vec from = Broadcast32(start + t);
        sums[0][t] = Add(sums[0][t], from);
        sums[1][t] = Add(sums[1][t], from);
      });
    }
    AddWords<kTokens>(w, quads, planes[plane], stride, sums);
  });
}

// -96 times the sum of a token's strip, [token].
inline void Mxfp4Starts(const Activations& x, int strip, int blocks, int32_t* out) {
  for (int t = 0; t < x.m; ++t) {
    const int64_t at = int64_t{t} * x.num_blocks + strip * kStripBlocks;
    int32_t high = 0, low = 0;
    for (int b = 0; b < blocks; ++b) {
      high += x.sum_hi[at + b];
      low += x.sum_lo[at + b];
    }
    out[t] = -96 * (256 * high + low);
  }
}

inline NextPart NextMxfp4(const MatmulArgs& args, const TileRows& rows, int p, int panel_begin,
                          int panel_end, int strip) {
  const PackedMatrix& w = *args.w;
  const bool last = p + kTilePanels >= panel_end;
  const int panel = last ? panel_begin : p + kTilePanels;
  const int first = (last ? strip + 1 : strip) * kStripBlocks;
  const int left = w.cols / kQuantBlock - first;
  const int blocks = left < kStripBlocks ? (left > 0 ? left : 0) : kStripBlocks;
  return {Mxfp4Nibbles(w.data + panel * w.panel_bytes, w.cols) + first * 256, blocks * 256,
          w.panel_bytes, rows.vectors == 2 ? kTilePanels : 1, NumTiles(args.x->m)};
}

void Mxfp4Tiles(const MatmulArgs& args, int panel_begin, int panel_end) {
  const PackedMatrix& w = *args.w;
  const Activations& x = *args.x;
  const int blocks = w.cols / kQuantBlock;
  Mxfp4Part part;
  int32_t start[kMostRows];
  float x_scale[kMostRows];
  for (int strip = 0; strip * kStripBlocks < blocks; ++strip) {
    const int left = blocks - strip * kStripBlocks;
    const int here = left < kStripBlocks ? left : kStripBlocks;
    TurnScales(x, strip, x_scale);
    if constexpr (kDotsBytes) Mxfp4Starts(x, strip, here, start);
    for (int p = panel_begin; p < panel_end; p += kTilePanels) {
      const TileRows rows(w, p, panel_end);
      UnpackMxfp4Part(rows, w.cols, strip, here, part);
      NextPart next = NextMxfp4(args, rows, p, panel_begin, panel_end, strip);
      ForTileTokens(x.m, [&]<int kTokens>(std::integral_constant<int, kTokens>, int t) {
        next.Share();
        const int64_t at = int64_t{t} * x.stride + strip * kStrip;
        float* y = args.y + t * args.y_stride + p * kPanelRows;
        // Read first: with a loop between them and their use, sums would lose their registers.
        TileFloats<kTokens> floats;
        floats.Read(y, args.y_stride, rows.vectors, strip == 0);
        Sums<kTokens> sums;
        if constexpr (kDotsBytes) {
          SumPlanes<2, kTokens>(part.w, here * 8, {x.hi + at, x.lo + at}, x.stride, start + t,
                                sums);
        } else {
          Clear<kTokens>(sums);
          AddWords<kTokens>(part.w, here * 16, x.whole + at, x.stride, sums);
        }
        floats.Add(sums, part.base, x_scale + t);
        floats.Write(y, args.y_stride, rows.vectors);
      });
    }
  }
}

#include "cpu/spills.inl"

void MatmulMxfp4(const MatmulArgs& all, int panel_begin, int panel_end) {
  ForRows(all, [&](const MatmulArgs& args) {
    Mxfp4Tiles(args, panel_begin, panel_end);
    AddSpills(args, panel_begin * kPanelRows, panel_end * kPanelRows);
    AddBias(args, panel_begin, panel_end);
  });
}

// ---- A factor per block -------------------------------------------------------------------------

// Whole weights of 16 bits times whole activations: a block is 16 steps, and its sum needs neither
// a start nor a shift.
constexpr int kPartBlocks = kLanes == 16 ? 10 : kStripBlocks;  // even; about 20 KB
struct BlocksPart {
  alignas(64) uint8_t w[int64_t{kPartBlocks} * kQuantBlock * 4 * kLanes];
  alignas(64) float factor[kPartBlocks][2][kLanes];
  alignas(64) float minimum[kPartBlocks][2][kLanes];
};

// Block b of the panel, one vector of the two.
template <PackKind kKind>
[[gnu::always_inline]] inline void UnpackBlock(const uint8_t* panel, int cols, int b, int v,
                                               int place, BlocksPart& part) {
  constexpr BlockTraits kTraits = kTraitsOf<kKind>;
  const int row = TileRows::FirstRow(v);
  const uint8_t* at = panel + CodesOf<kKind>(cols) + b / 2 * kPairBytes<kKind>;
  uint8_t* out = part.w + (int64_t{place} * 32 + v) * kVec;
  const Vec offset = Spread(kTraits.offset * 0x10001);
#pragma GCC unroll 8
  for (int line = 0; line < 8; ++line) {
    const WideLine wide = Widen(CodesLine<kKind>(at, line, b % 2, row), offset);
    StoreVec(out + line * 4 * kVec, wide.first);
    StoreVec(out + line * 4 * kVec + 2 * kVec, wide.second);
  }
  StoreF(part.factor[place][v], FactorsAt<kKind>(panel, at, b, row));
  if constexpr (kTraits.has_min) {
    StoreF(part.minimum[place][v], Halves(MinimaOf(at) + b % 2 * kPanelRows + row));
  }
}

// Blocks [begin, end) of a row, all in one strip, and what they need of each token.
struct BlocksRange {
  int begin, end;
  alignas(64) float x_scale[kMostRows];
  alignas(64) float x_sum[kPartBlocks][kMostRows];  // of the block's activations, for minima
};
template <PackKind kKind>
inline void TurnTokens(const Activations& x, BlocksRange& range) {
  TurnScales(x, range.begin / kStripBlocks, range.x_scale);
  if constexpr (kTraitsOf<kKind>.has_min) {
    for (int b = range.begin; b < range.end; ++b) {
      for (int t = 0; t < x.m; ++t) {
        const int64_t at = int64_t{t} * x.num_blocks + b;
        range.x_sum[b - range.begin][t] = static_cast<float>(256 * x.sum_hi[at] + x.sum_lo[at]);
      }
    }
  }
}

template <PackKind kKind, int kTokens>
[[gnu::always_inline]] inline void BlocksTile(const MatmulArgs& args, const BlocksPart& part,
                                              const BlocksRange& range, int token, float* y,
                                              int vectors) {
  const Activations& x = *args.x;
  const int16_t* values = x.whole + int64_t{token} * x.stride + range.begin * kQuantBlock;
  TileFloats<kTokens> floats;
  floats.Read(y, args.y_stride, vectors, range.begin == 0);
#pragma GCC unroll 1
  for (int b = 0; b < range.end - range.begin; ++b) {
    Sums<kTokens> sums;
    Clear<kTokens>(sums);
    AddWords<kTokens>(part.w + int64_t{b} * 32 * kVec, 16, values + b * kQuantBlock, x.stride,
                      sums);
    floats.Add(sums, part.factor[b], range.x_scale + token);
    if constexpr (kTraitsOf<kKind>.has_min) {
      floats.AddMinima(range.x_sum[b] + token, part.minimum[b], range.x_scale + token);
    }
  }
  floats.Write(y, args.y_stride, vectors);
}

template <PackKind kKind>
void BlocksTiles(const MatmulArgs& args, int panel_begin, int panel_end) {
  const PackedMatrix& w = *args.w;
  const Activations& x = *args.x;
  const int blocks = w.cols / kQuantBlock;
  BlocksPart part;
  BlocksRange range;
  for (range.begin = 0; range.begin < blocks; range.begin = range.end) {
    const int strip_end = (range.begin / kStripBlocks + 1) * kStripBlocks;
    range.end = range.begin + kPartBlocks;
    if (range.end > strip_end) range.end = strip_end;
    if (range.end > blocks) range.end = blocks;
    TurnTokens<kKind>(x, range);
    for (int p = panel_begin; p < panel_end; p += kTilePanels) {
      const TileRows rows(w, p, panel_end);
      for (int b = range.begin; b < range.end; ++b) {
        for (int v = 0; v < 2; ++v) {
          UnpackBlock<kKind>(rows.panels[v], w.cols, b, v, b - range.begin, part);
        }
      }
      // The next panels' same blocks, or this call's first panels' next ones.
      const bool last = p + kTilePanels >= panel_end;
      const int panel = last ? panel_begin : p + kTilePanels;
      const int ahead = last ? range.end : range.begin;
      NextPart next(
          w.data + panel * w.panel_bytes + CodesOf<kKind>(w.cols) + ahead / 2 * kPairBytes<kKind>,
          ahead < blocks ? (range.end - range.begin + 1) / 2 * kPairBytes<kKind> : 0, w.panel_bytes,
          rows.vectors == 2 ? kTilePanels : 1, NumTiles(x.m));
      ForTileTokens(x.m, [&]<int kTokens>(std::integral_constant<int, kTokens>, int t) {
        next.Share();
        BlocksTile<kKind, kTokens>(args, part, range, t,
                                   args.y + t * args.y_stride + p * kPanelRows, rows.vectors);
      });
    }
  }
}

template <PackKind kKind>
void MatmulBlocks(const MatmulArgs& all, int panel_begin, int panel_end) {
  ForRows(all, [&](const MatmulArgs& args) {
    BlocksTiles<kKind>(args, panel_begin, panel_end);
    AddBias(args, panel_begin, panel_end);
  });
}
