// SPDX-License-Identifier: Apache-2.0
// Products of many tokens, for vectors of any width: a tile is two vectors of rows times up to
// kTileTokens tokens, its sums in registers. A broadcast serves both vectors, planes of activations
// are walked one by one, and weights are unpacked once per call into L1. Included in an unnamed
// namespace after panels.h and avx512_tile.inl or avx2_tile.inl.

constexpr int kVec = kLanes * 4;         // bytes of a vector
constexpr int kTilePanels = kLanes / 8;  // panels whose rows fill two vectors
constexpr int kMostRows = 128;           // tokens that go through a part of the panels together

// Unrolled where templates are and not by a pragma: g++ 12 takes arrays apart before it unrolls,
// and would leave every sum with a store to the stack in the innermost loop.
#define HEARTH_TILE_INLINE __attribute__((always_inline))
template <int... kAt, class F>
[[gnu::always_inline]] inline void UnrollAs(std::integer_sequence<int, kAt...>, F&& f) {
  (f(std::integral_constant<int, kAt>{}), ...);
}
template <int kCount, class F>
[[gnu::always_inline]] inline void Unroll(F&& f) {
  UnrollAs(std::make_integer_sequence<int, kCount>{}, f);
}

[[gnu::always_inline]] inline Vec Broadcast32(const void* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return Spread(value);
}

// Rows of one plane, three to a pointer: p, p + stride and p + 2 stride are addresses that an
// instruction can name. With a pointer each they would not fit the registers.
template <int kTokens, class Value>
class PlaneRows {
 public:
  [[gnu::always_inline]] PlaneRows(const Value* x, int64_t stride)
      : stride_(stride * int64_t{sizeof(Value)}) {
    Unroll<kPointers>([&](auto i) HEARTH_TILE_INLINE {
      at_[i] = reinterpret_cast<const uint8_t*>(x) + 3 * i * stride_;
    });
  }
  // Keeps the compiler from making offsets of them.
  [[gnu::always_inline]] void Pin() {
    Unroll<kPointers>([&](auto i) HEARTH_TILE_INLINE { asm("" : "+r"(at_[i])); });
  }
  [[gnu::always_inline]] Vec At(int token, int bytes) const {
    return Broadcast32(at_[token / 3] + token % 3 * stride_ + bytes);
  }
  [[gnu::always_inline]] void Step(int bytes) {
    Unroll<kPointers>([&](auto i) HEARTH_TILE_INLINE { at_[i] += bytes; });
  }

 private:
  static constexpr int kPointers = (kTokens + 2) / 3;
  const uint8_t* at_[kPointers];
  int64_t stride_;
};

template <int kTokens>
using Sums = Vec[2][kTokens];

template <int kTokens>
[[gnu::always_inline]] inline void Clear(Sums<kTokens>& sums) {
  Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE { sums[0][t] = sums[1][t] = Spread(0); });
}

// sums += words of weights times one plane of the tokens, a 32-bit word of both at a time: four
// bytes (Value is int8_t) or two values of 16 bits. `w` has [word][2 vectors]; words come in pairs.
template <int kTokens, class Value>
[[gnu::always_inline]] inline void AddWords(const uint8_t* w, int words, const Value* x,
                                            int64_t stride, Sums<kTokens>& sums) {
  PlaneRows<kTokens, Value> rows(x, stride);
#pragma GCC unroll 1
  for (int i = 0; i < words; i += 2) {
    rows.Pin();
    Unroll<2>([&](auto word) HEARTH_TILE_INLINE {
      const Vec w0 = LoadVec(w + 2 * word * kVec), w1 = LoadVec(w + (2 * word + 1) * kVec);
      Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
        const Vec values = rows.At(t, 4 * word);
        AddDot<Value>(sums[0][t], w0, values);
        AddDot<Value>(sums[1][t], w1, values);
      });
    });
    w += 4 * kVec;
    rows.Step(8);
  }
}

// kQuads quads of unsigned bytes times one plane, where products of bytes are no single
// instruction: sums of 16 bits, two a row. `w` has [quad][2 vectors].
template <int kQuads, int kTokens>
[[gnu::always_inline]] inline void NarrowQuads(const uint8_t* w, const int8_t* x, int64_t stride,
                                               Sums<kTokens>& sums) {
  PlaneRows<kTokens, int8_t> rows(x, stride);
  rows.Pin();
  Unroll<kQuads>([&](auto q) HEARTH_TILE_INLINE {
    const Vec w0 = LoadVec(w + 2 * q * kVec), w1 = LoadVec(w + (2 * q + 1) * kVec);
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      const Vec values = rows.At(t, 4 * q);
      const Vec a = MulBytes(w0, values), b = MulBytes(w1, values);
      if constexpr (q == 0) {
        sums[0][t] = a;
        sums[1][t] = b;
      } else {
        AddNarrow(sums[0][t], a);
        AddNarrow(sums[1][t], b);
      }
    });
  });
}

// What the rows of a tile have come to, in memory between the blocks that add to it: [token][row].
template <int kTokens>
struct TileFloats {
  alignas(64) float at[kTokens][2][kLanes];
  // `vectors` is 1 where the tile's second panel is not there.
  [[gnu::always_inline]] void Read(const float* y, int64_t stride, int vectors, bool first) {
#pragma GCC unroll 1
    for (int t = 0; t < kTokens; ++t) {
      for (int v = 0; v < 2; ++v) {
        const bool there = !first && v < vectors;
        StoreF(at[t][v], there ? LoadF(y + t * stride + v * kLanes) : SpreadF(0.0f));
      }
    }
  }
  [[gnu::always_inline]] void Write(float* y, int64_t stride, int vectors) const {
#pragma GCC unroll 1
    for (int t = 0; t < kTokens; ++t) {
      for (int v = 0; v < vectors; ++v) StoreF(y + t * stride + v * kLanes, LoadF(at[t][v]));
    }
  }
  // at = fma(float(sums), factor * x_scale, at)
  [[gnu::always_inline]] void Add(const Sums<kTokens>& sums, const float (&factor)[2][kLanes],
                                  const float* x_scale) {
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      const VecF scale = SpreadF(x_scale[t]);
      Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
        const VecF by = MulF(LoadF(factor[v]), scale);
        StoreF(at[t][v], FmaF(ToFloat(sums[v][t]), by, LoadF(at[t][v])));
      });
    });
  }
  // at = fma(x_sum, minimum * x_scale, at)
  [[gnu::always_inline]] void AddMinima(const float* x_sum, const float (&minimum)[2][kLanes],
                                        const float* x_scale) {
    Unroll<kTokens>([&](auto t) HEARTH_TILE_INLINE {
      const VecF scale = SpreadF(x_scale[t]), sum = SpreadF(x_sum[t]);
      Unroll<2>([&](auto v) HEARTH_TILE_INLINE {
        StoreF(at[t][v], FmaF(sum, MulF(LoadF(minimum[v]), scale), LoadF(at[t][v])));
      });
    });
  }
};

// Where the two vectors of a tile's rows come from.
struct TileRows {
  TileRows(const PackedMatrix& w, int panel, int end)
      : vectors(kTilePanels == 1 || panel + 1 < end ? 2 : 1) {
    panels[0] = w.data + panel * w.panel_bytes;
    panels[1] = kTilePanels == 2 && vectors == 2 ? panels[0] + w.panel_bytes : panels[0];
  }
  static constexpr int FirstRow(int v) { return kTilePanels == 1 ? v * kLanes : 0; }
  const uint8_t* panels[2];
  int vectors;  // 1: the second panel is not there, and the first takes its place
};

// Asks memory for the part that is next, in even shares while tiles run.
class NextPart {
 public:
  NextPart(const uint8_t* at, int64_t bytes, int64_t panel_bytes, int panels, int shares)
      : at_(at), bytes_(bytes), panel_bytes_(panel_bytes), panels_(panels), shares_(shares) {}
  [[gnu::always_inline]] void Share() {
    const int64_t begin = bytes_ * done_ / shares_ / 64 * 64;
    ++done_;
    const int64_t end = done_ == shares_ ? bytes_ : bytes_ * done_ / shares_ / 64 * 64;
    for (int p = 0; p < panels_; ++p) {
      for (int64_t i = begin; i < end; i += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(at_ + p * panel_bytes_ + i), _MM_HINT_T1);
      }
    }
  }

 private:
  const uint8_t* at_;
  int64_t bytes_, panel_bytes_;
  int panels_, shares_, done_ = 0;
};

constexpr int NumTiles(int tokens) { return (tokens + kTileTokens - 1) / kTileTokens; }

template <int kTokens, class F>
[[gnu::always_inline]] inline void CallTile(int tokens, int first, F&& f) {
  if constexpr (kTokens > 0) {
    if (tokens == kTokens) return f(std::integral_constant<int, kTokens>{}, first);
    CallTile<kTokens - 1>(tokens, first, f);
  }
}
// Calls f(tokens as a constant, first token) for tiles as even as can be.
template <class F>
[[gnu::always_inline]] inline void ForTileTokens(int m, F&& f) {
  const int tiles = NumTiles(m);
  for (int i = 0, at = 0; i < tiles; ++i) {
    const int tokens = (m - at + tiles - i - 1) / (tiles - i);
    CallTile<kTileTokens>(tokens, at, f);
    at += tokens;
  }
}

// Calls f(args for at most kMostRows tokens) until there are no more.
template <class F>
inline void ForRows(const MatmulArgs& args, F&& f) {
  for (int first = 0; first < args.x->m; first += kMostRows) {
    Activations x = *args.x;
    const bool is_super = x.strip == kSuper;
    const int64_t blocks = int64_t{first} * x.num_blocks;
    x.m = x.m - first < kMostRows ? x.m - first : kMostRows;
    x.lo += int64_t{first} * x.stride;
    x.scale += int64_t{first} * x.num_strips;
    x.sum_lo += blocks;
    x.sum16_lo += is_super ? 2 * blocks : 0;
    x.sum32_lo += is_super ? blocks : 0;
    if (x.planes == 2) {
      x.hi += int64_t{first} * x.stride;
      x.sum_hi += blocks;
      x.sum16_hi += is_super ? 2 * blocks : 0;
      x.sum32_hi += is_super ? blocks : 0;
      x.whole += is_super ? 0 : int64_t{first} * x.stride;
    }
    MatmulArgs part = args;
    part.x = &x;
    part.y += first * args.y_stride;
    f(part);
  }
}

inline void AddBias(const MatmulArgs& args, int panel_begin, int panel_end) {
  if (args.bias == nullptr) return;
  for (int t = 0; t < args.x->m; ++t) {
    float* y = args.y + t * args.y_stride;
    for (int r = panel_begin * kPanelRows; r < panel_end * kPanelRows; r += kLanes) {
      StoreF(y + r, AddF(LoadF(y + r), LoadF(args.bias + r)));
    }
  }
}
