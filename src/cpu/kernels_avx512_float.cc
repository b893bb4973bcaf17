// SPDX-License-Identifier: Apache-2.0
// Products with F32, F16 and BF16 weights on AVX-512: a vector is the sixteen lanes of one sum. One
// token runs beside all sixteen rows of a panel; several run in tiles, which use a weight for up to
// six tokens and a token for four or eight rows. Tiles take all columns at once: a core reads both
// from L2 as fast as it multiplies, where cutting columns to fit L1 costs more for waiting sums.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

// Bytes of weights asked for ahead of use by one token.
constexpr int kAhead = 8192;

// What the formats differ in: the bytes of 32 columns of a row, and the first or second sixteen of
// them as floats.
struct F32 {
  static constexpr int kBytes = 128;
  template <int kHalf>
  static __m512 Load(const uint8_t* at) {
    return _mm512_load_ps(at + 64 * kHalf);
  }
};
struct F16 {
  static constexpr int kBytes = 64;
  template <int kHalf>
  static __m512 Load(const uint8_t* at) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(at + 32 * kHalf)));
  }
};
struct Bf16 {
  static constexpr int kBytes = 64;
  template <int kHalf>
  static __m512 Load(const uint8_t* at) {
    // A mask of words instead of a vector of masks: a tile of 4 x 6 needs every register.
    const __m512i bits = kHalf == 0 ? _mm512_slli_epi32(_mm512_load_si512(at), 16)
                                    : _mm512_maskz_loadu_epi16(0xaaaaaaaau, at);
    return _mm512_castsi512_ps(bits);
  }
};

// JoinLanes of four sums at once: halves of 8, 4, 2 and 1 lanes meet, as there.
inline __m128 Join4(__m512 a, __m512 b, __m512 c, __m512 d) {
  const auto eight = [](__m512 lanes) {
    return _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  };
  const auto four = [](__m256 x, __m256 y) {  // of x in the lower half, of y in the upper one
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  };
  const __m256 ab = four(eight(a), eight(b)), cd = four(eight(c), eight(d));
  const __m256 two =
      _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  const __m256 one =
      _mm256_add_ps(_mm256_shuffle_ps(two, two, 0x88), _mm256_shuffle_ps(two, two, 0xdd));
  return _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1));
}

// Rows [row, row + kRows) times tokens [token, token + kTokens).
struct Tile {
  int row, token;
  // Weights to ask for meanwhile: so many bytes with each block. Not read when kRows is 16.
  const uint8_t* fetch;
  int share;
};

// Into L2, which has room for the panel after this one. Always inline: g++ 12 takes a function that
// only prefetches for one without effect and drops its calls.
[[gnu::always_inline]] inline void Fetch(const uint8_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
}

template <class Format, int kHalf, int kRows, int kTokens>
[[gnu::always_inline]] inline void HalfBlock(const uint8_t* at, const float* const (&x)[kTokens],
                                             int column, __m512 (&sum)[kRows][kTokens]) {
  __m512 values[kTokens];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    values[t] = _mm512_loadu_ps(x[t] + column + 16 * kHalf);
    asm("" : "+v"(values[t]));  // or g++ loads it again for every row
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const __m512 weight = Format::template Load<kHalf>(at + r * Format::kBytes);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) sum[r][t] = _mm512_fmadd_ps(weight, values[t], sum[r][t]);
  }
}

template <class Format, int kRows, int kTokens>
void RunTile(const MatmulArgs& args, const Tile& tile) {
  constexpr int kBlockBytes = kPanelRows * Format::kBytes;
  const PackedMatrix& w = *args.w;
  const uint8_t* at =
      w.data + tile.row / kPanelRows * w.panel_bytes + tile.row % kPanelRows * Format::kBytes;
  const float* x[kTokens];
  for (int t = 0; t < kTokens; ++t) x[t] = args.xf + (tile.token + t) * args.xf_stride;
  __m512 sum[kRows][kTokens];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) sum[r][t] = _mm512_setzero_ps();
  }
  const uint8_t* fetch = tile.fetch;
  int due = 0;
  for (int column = 0; column < w.cols; column += kQuantBlock, at += kBlockBytes) {
    if constexpr (kRows == kPanelRows) {
#pragma GCC unroll 32
      for (int i = 0; i < kBlockBytes; i += 64) Fetch(at + kAhead + i);
    } else {
      for (due += tile.share; due >= 64; due -= 64, fetch += 64) Fetch(fetch);
    }
    HalfBlock<Format, 0>(at, x, column, sum);
    HalfBlock<Format, 1>(at, x, column, sum);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; r += 4) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      __m128 y = Join4(sum[r][t], sum[r + 1][t], sum[r + 2][t], sum[r + 3][t]);
      if (args.bias != nullptr) y = _mm_add_ps(y, _mm_loadu_ps(args.bias + tile.row + r));
      _mm_storeu_ps(args.y + (tile.token + t) * args.y_stride + tile.row + r, y);
    }
  }
}

using TileFunction = void (*)(const MatmulArgs&, const Tile&);
constexpr int kMostTokens = 6;
struct Choice {
  int rows;
  TileFunction run;
};
template <class Format>
constexpr Choice kChoices[kMostTokens] = {{16, RunTile<Format, 16, 1>}, {8, RunTile<Format, 8, 2>},
                                          {8, RunTile<Format, 8, 3>},   {4, RunTile<Format, 4, 4>},
                                          {4, RunTile<Format, 4, 5>},   {4, RunTile<Format, 4, 6>}};

// Tokens in tiles of nearly the same size. A panel's tiles ask for the next panel, each for a part,
// so that memory is read all the time.
template <class Format>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int64_t m = args.x->m, tiles = (m + kMostTokens - 1) / kMostTokens;
  const int blocks = args.w->cols / kQuantBlock;
  for (int p = panel_begin; p < panel_end; ++p) {
    const uint8_t* fetch = args.w->data + (p + 1) * args.w->panel_bytes;
    for (int64_t i = 0; i < tiles; ++i) {
      const auto token = static_cast<int>(m * i / tiles);
      const Choice& choice = kChoices<Format>[m * (i + 1) / tiles - token - 1];
      const int64_t runs = tiles * (kPanelRows / choice.rows);
      const auto share = static_cast<int>((kPanelRows * Format::kBytes + runs - 1) / runs);
      for (int row = 0; row < kPanelRows; row += choice.rows) {
        choice.run(args, {p * kPanelRows + row, token, fetch, share});
        fetch += int64_t{share} * blocks / 64 * 64;
      }
    }
  }
}

}  // namespace

void AddAvx512Floats(KernelTable& table) noexcept {
  table.matmul[static_cast<int>(PackKind::kF32)] = Matmul<F32>;
  table.matmul[static_cast<int>(PackKind::kF16)] = Matmul<F16>;
  table.matmul[static_cast<int>(PackKind::kBf16)] = Matmul<Bf16>;
}

}  // namespace hearth
