// SPDX-License-Identifier: Apache-2.0
// What the files with AVX-512 products share: tokens, prefetches, and the walk over panels and
// tokens. Included after panels.h, inside an unnamed namespace.

inline int32_t Load32(const int8_t* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

// Always inline, like whatever does nothing but call it: g++ 12 takes such a function for one
// without effect and drops its calls.
[[gnu::always_inline]] inline void Prefetch(const uint8_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
}

struct Tile {
  const float* bias;  // added at once, or null
  int token, panel;
  int64_t jump;  // from a panel to the one its stream reads next
};

// What to ask memory for while a block is used: the block kAhead further on, which may lie in the
// stream's next panel, and towards the end a line of that panel's header.
template <int kBlockBytes, int kAhead>
struct Ahead {
  Ahead(int64_t header, int num_blocks, int64_t jump_bytes)
      : body(header),
        header_lines(static_cast<int>(header / 64)),
        blocks(num_blocks),
        jump(jump_bytes) {}
  [[gnu::always_inline]] void Fetch(const uint8_t* panel, int block) const {
    int64_t at = body + int64_t{block + kAhead} * kBlockBytes;
    if (block + kAhead >= blocks) at += jump - int64_t{blocks} * kBlockBytes;
#pragma GCC unroll 12
    for (int i = 0; i < kBlockBytes; i += 64) Prefetch(panel + at + i);
    const int line = block - (blocks - header_lines);
    if (line >= 0) Prefetch(panel + jump + line * 64);
  }
  int64_t body;
  int header_lines, blocks;
  int64_t jump;
};

template <int kTokens>
struct Tokens {
  Tokens(const Activations& x, int token) {
    for (int t = 0; t < kTokens; ++t) {
      hi[t] = x.hi + int64_t{token + t} * x.stride;
      lo[t] = x.lo + int64_t{token + t} * x.stride;
      sum_hi[t] = x.sum_hi + int64_t{token + t} * x.num_blocks;
      sum_lo[t] = x.sum_lo + int64_t{token + t} * x.num_blocks;
      scale[t] = x.scale + int64_t{token + t} * x.num_strips;
    }
  }
  const int8_t *hi[kTokens], *lo[kTokens];
  const int32_t *sum_hi[kTokens], *sum_lo[kTokens];
  const float* scale[kTokens];
};

template <int kTokens, int kPanels>
inline void Store(const MatmulArgs& args, const Tile& tile, const __m512 (&sum)[kPanels][kTokens]) {
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const int row = (tile.panel + p) * kPanelRows;
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      __m512 y = sum[p][t];
      if (tile.bias != nullptr) y = _mm512_add_ps(y, _mm512_loadu_ps(tile.bias + row));
      _mm512_storeu_ps(args.y + (tile.token + t) * args.y_stride + row, y);
    }
  }
}

using TileFunction = void (*)(const MatmulArgs&, const Tile&);
// How many panels run side by side for so many tokens, and the functions for that and for the rest.
struct Choice {
  int panels;
  TileFunction several, one;
};
constexpr int kMostTokens = 8;

// Panels once from memory, then all tokens while they are in cache.
void ForTiles(const MatmulArgs& args, const float* bias, int panel_begin, int panel_end,
              const Choice (&choices)[kMostTokens]) {
  const int m = args.x->m;
  const Choice& widest = choices[(m < kMostTokens ? m : kMostTokens) - 1];
  for (int p = panel_begin; p < panel_end;) {
    const int panels = p + widest.panels <= panel_end ? widest.panels : 1;
    for (int t = 0; t < m; t += kMostTokens) {
      const int tokens = m - t < kMostTokens ? m - t : kMostTokens;
      const bool last = t + tokens == m;
      const Choice& choice = choices[tokens - 1];
      // Only the first group of tokens meets cold panels and chose their number.
      for (int i = 0; i < panels;) {
        const int now = i + choice.panels <= panels ? choice.panels : 1;
        const Tile tile{bias, t, p + i, last ? panels * args.w->panel_bytes : 0};
        (now == choice.panels ? choice.several : choice.one)(args, tile);
        i += now;
      }
    }
    p += panels;
  }
}
