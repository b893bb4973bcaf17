// SPDX-License-Identifier: Apache-2.0
// The products of tile_bytes.inl for few tokens, bound by reading weights: codes are taken apart as
// they come, sums and floats stay in registers, and several panels are read side by side. Included
// after tile_bytes.inl, inside an unnamed namespace.

constexpr int kPanelVectors = kPanelRows / kLanes;

// Codes of MXFP4 stay unshifted here, plus 12: the sum is shifted.
template <PackKind kKind>
constexpr int kFewOffset = kIsMxfp4<kKind> ? 12 : kByteOffset<kKind>;

// Quad `quad` of block b for the rows of one vector, which start at `row`; `at` is where the pair
// of blocks lies. Of full bytes these are the weights themselves: there magnitudes meet activations
// with their signs.
template <PackKind kKind>
[[gnu::always_inline]] inline Vec FewCodes(const uint8_t* at, int b, int quad, int row) {
  if constexpr (kIsMxfp4<kKind>) {
    const Vec raw = LoadVec(at + b % 2 * 256 + quad / 2 * 64 + row * 4);
    const Vec table =
        Quarters(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    return LookUp(table, And(quad % 2 == 0 ? raw : Right<4>(raw), Spread(0x0f0f0f0f)));
  } else {
    const Vec codes = CodesLine<kKind>(at, quad, b % 2, row);
    if constexpr (!kFullBytes<kKind>) return codes;
    return SubBytes(codes, SpreadByte(kTraitsOf<kKind>.offset));
  }
}

// The sums of a few tokens in several vectors of rows.
template <int kTokens, int kVectors>
using FewSums = Vec[kVectors][kTokens];

// Block b times the tokens, without what the offset adds.
template <PackKind kKind, int kTokens, int kVectors>
[[gnu::always_inline]] inline void SumFew(const uint8_t* at, int64_t panel_bytes, int b,
                                          const int8_t* x, int64_t stride,
                                          FewSums<kTokens, kVectors>& sums) {
  const Vec ones = Spread(0x10001);
  FewSums<kTokens, kVectors> narrow;
  Unroll<8>([&](auto quad) HEARTH_TILE_INLINE {
    Vec w[kVectors], magnitude[kVectors];
    Unroll<kVectors>([&](auto v) HEARTH_TILE_INLINE {
      w[v] = FewCodes<kKind>(at + v / kPanelVectors * panel_bytes, b, quad,
                             v % kPanelVectors * kLanes);
      if constexpr (kFullBytes<kKind>) magnitude[v] = TakeSigns(w[v], w[v]);
    });
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      const Vec values = Broadcast32(x + t * stride + 4 * quad);
      Unroll<kVectors>([&](auto v) HEARTH_TILE_INLINE {
        if constexpr (quad == 0) sums[v][t] = Spread(0);
        if constexpr (kDotsBytes) {
          AddDot<int8_t>(sums[v][t], w[v], values);
        } else if constexpr (kFullBytes<kKind>) {
          AddDot<int16_t>(sums[v][t], MulBytes(magnitude[v], TakeSigns(values, w[v])), ones);
        } else {
          constexpr int kRun = kByteRun<kKind>;
          const Vec products = MulBytes(w[v], values);
          if constexpr (quad % kRun == 0) {
            narrow[v][t] = products;
          } else {
            AddNarrow(narrow[v][t], products);
          }
          if constexpr (quad % kRun == kRun - 1) AddDot<int16_t>(sums[v][t], narrow[v][t], ones);
        }
      });
    });
  });
}

// A vector's factors and minima of block b; of MXFP4 its shifts.
template <PackKind kKind>
struct FewFactors {
  [[gnu::always_inline]] FewFactors(const uint8_t* panel, const uint8_t* at, int cols, int b,
                                    int row) {
    if constexpr (kIsMxfp4<kKind>) {
      const uint8_t* bases = Mxfp4Bases(panel) + b / kStripBlocks * kPanelRows + row;
      factor = FloatOfBits(Left<23>(WideBytes(bases)));
      shift = Right<4>(WideBytes(Mxfp4Shifts(panel, cols) + b * kPanelRows + row));
    } else {
      factor = FactorsAt<kKind>(panel, at, b, row);
      if constexpr (kTraitsOf<kKind>.has_min) {
        minimum = Halves(MinimaOf(at) + b % 2 * kPanelRows + row);
      }
    }
  }
  VecF factor, minimum;
  Vec shift;
};

// What memory is asked for while a pair of blocks is used: the pair some way on, which may lie in
// the stream's next panel, `jump` bytes from this one.
template <PackKind kKind>
[[gnu::always_inline]] inline void FetchPair(const uint8_t* panel, int cols, int b, int64_t jump) {
  constexpr int64_t kPair = kBytesOfPair<kKind>;
  constexpr int kAhead = 2 * static_cast<int>((2048 + kPair - 1) / kPair);  // blocks
  const int blocks = cols / kQuantBlock;
  const bool is_next = b + kAhead >= blocks;
  const int ahead = is_next ? b + kAhead - blocks : b + kAhead;
  const uint8_t* at = panel + (is_next ? jump : 0) + BytesAt<kKind>(cols, ahead & ~1);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kPair; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + i), _MM_HINT_T0);
  }
}

// kTokens tokens from `token` on through kVectors vectors of rows from `panel` on.
template <PackKind kKind, int kTokens, int kVectors>
void FewTile(const MatmulArgs& args, int panel, int token, int64_t jump) {
  constexpr int kPanels = kVectors / kPanelVectors;
  const PackedMatrix& w = *args.w;
  const Activations& x = *args.x;
  const int blocks = w.cols / kQuantBlock;
  const uint8_t* panels = w.data + panel * w.panel_bytes;
  const int8_t* values = x.lo + int64_t{token} * x.stride;
  const float* scale = x.scale + int64_t{token} * x.num_strips;
  const int32_t* x_sum = x.sum_lo + int64_t{token} * x.num_blocks;
  VecF y[kVectors][kTokens];
  Unroll<kVectors>([&](auto v) HEARTH_TILE_INLINE {
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE { y[v][t] = SpreadF(0.0f); });
  });
#pragma GCC unroll 1
  for (int pair = 0; pair < blocks; pair += 2) {
    Unroll<kPanels>([&](auto p) HEARTH_TILE_INLINE {
      FetchPair<kKind>(panels + p * w.panel_bytes, w.cols, pair, jump);
    });
    Unroll<2>([&](auto second) HEARTH_TILE_INLINE {
      const int b = pair + second;
      if (b >= blocks) return;
      const int64_t at = BytesAt<kKind>(w.cols, pair);
      FewSums<kTokens, kVectors> sums;
      SumFew<kKind, kTokens, kVectors>(panels + at, w.panel_bytes, second, values + b * kQuantBlock,
                                       x.stride, sums);
      Unroll<kVectors>([&](auto v) HEARTH_TILE_INLINE {
        const uint8_t* from = panels + v / kPanelVectors * w.panel_bytes;
        const FewFactors<kKind> by(from, from + at, w.cols, b, v % kPanelVectors * kLanes);
        Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
          const int32_t sum = x_sum[t * x.num_blocks + b];
          const VecF x_scale = SpreadF(scale[t * x.num_strips + b]);
          Vec exact = sums[v][t];
          if constexpr (kFewOffset<kKind> != 0) exact = Sub(exact, Spread(kFewOffset<kKind> * sum));
          if constexpr (kIsMxfp4<kKind>) exact = LeftBy(exact, by.shift);
          y[v][t] = FmaF(ToFloat(exact), MulF(by.factor, x_scale), y[v][t]);
          if constexpr (kTraitsOf<kKind>.has_min) {
            const VecF minimum = MulF(by.minimum, x_scale);
            y[v][t] = FmaF(SpreadF(static_cast<float>(sum)), minimum, y[v][t]);
          }
        });
      });
    });
  }
  Unroll<kVectors>([&](auto v) HEARTH_TILE_INLINE {
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      StoreF(args.y + (token + t) * args.y_stride + panel * kPanelRows + v * kLanes, y[v][t]);
    });
  });
}

// All tokens through kVectors vectors of rows, as many at a time as registers hold.
template <PackKind kKind, int kVectors>
inline void FewTokens(const MatmulArgs& args, int panel, int64_t jump) {
  constexpr int kMost = kLanes == 16 ? 4 : 3;
  const int m = args.x->m;
  for (int t = 0; t < m; t += kMost) {
    const int64_t after = t + kMost >= m ? jump : 0;
    switch (m - t) {
      case 1:
        FewTile<kKind, 1, kVectors>(args, panel, t, after);
        break;
      case 2:
        FewTile<kKind, 2, kVectors>(args, panel, t, after);
        break;
      case 3:
        FewTile<kKind, 3, kVectors>(args, panel, t, after);
        break;
      default:
        FewTile<kKind, kMost, kVectors>(args, panel, t, after);
    }
  }
}

template <PackKind kKind>
void MatmulFewBytes(const MatmulArgs& args, int panel_begin, int panel_end) {
  constexpr int kSide = kLanes == 16 ? 3 : 1;  // panels side by side
  int p = panel_begin;
  for (; p + kSide <= panel_end; p += kSide) {
    FewTokens<kKind, kSide * kPanelVectors>(args, p, kSide * args.w->panel_bytes);
  }
  for (; p < panel_end; ++p) FewTokens<kKind, kPanelVectors>(args, p, args.w->panel_bytes);
  if constexpr (kIsMxfp4<kKind>) {
    AddSpills(args, panel_begin * kPanelRows, panel_end * kPanelRows);
  }
  AddBias(args, panel_begin, panel_end);
}
