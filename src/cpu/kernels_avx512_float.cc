// SPDX-License-Identifier: Apache-2.0
// Products with F32, F16 and BF16 weights on AVX-512: a vector is the sixteen lanes of one sum. One
// token runs beside all sixteen rows of a panel; several run in tiles, which use a weight for up to
// six tokens and a token for four or eight rows.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

// Bytes of weights asked for ahead of use when they come from memory.
constexpr int kAhead = 4096;

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
  const __m256 two = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  const __m256 one =
      _mm256_add_ps(_mm256_shuffle_ps(two, two, 0x88), _mm256_shuffle_ps(two, two, 0xdd));
  return _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1));
}

// Rows [row, row + kRows) times tokens [token, token + kTokens).
struct Tile {
  int row, token;
  // Lines to ask for meanwhile, `fetch_lines` in each block: kAhead further on when the weights
  // come from memory now, or a share of the next tile's.
  const uint8_t* fetch;
  int fetch_first, fetch_lines;
};

// Always inline: g++ 12 takes a function that only prefetches for one without effect and drops its
// calls.
template <class Format, int kRows, int kHalf, int kTokens>
[[gnu::always_inline]] inline void HalfBlock(const uint8_t* at, const float* const (&x)[kTokens],
                                             int column, __m512 (&sum)[kRows][kTokens]) {
  __m512 values[kTokens];
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) values[t] = _mm512_loadu_ps(x[t] + column + 16 * kHalf);
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
  constexpr int kLines = kRows * Format::kBytes / 64;
  const PackedMatrix& w = *args.w;
  const uint8_t* at = w.data + tile.row / kPanelRows * w.panel_bytes +
                      tile.row % kPanelRows * Format::kBytes;
  const float* x[kTokens];
  for (int t = 0; t < kTokens; ++t) x[t] = args.xf + (tile.token + t) * args.xf_stride;
  __m512 sum[kRows][kTokens];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) sum[r][t] = _mm512_setzero_ps();
  }
  for (int column = 0; column < w.cols; column += kQuantBlock, at += kBlockBytes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLines; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(at + kAhead + i * 64), _MM_HINT_T0);
    }
    HalfBlock<Format, kRows, 0>(at, x, column, sum);
    HalfBlock<Format, kRows, 1>(at, x, column, sum);
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
constexpr Choice kChoices[kMostTokens] = {
    {16, RunTile<Format, 16, 1>}, {8, RunTile<Format, 8, 2>}, {8, RunTile<Format, 8, 3>},
    {4, RunTile<Format, 4, 4>},   {4, RunTile<Format, 4, 5>}, {4, RunTile<Format, 4, 6>}};

// Tokens in tiles of nearly the same size; four rows of weights stay in L1 while tokens pass.
template <class Format>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m, tiles = (m + kMostTokens - 1) / kMostTokens;
  if (m == 0) return;
  const int rows = kChoices<Format>[m / tiles - 1].rows;  // of the smallest, which has most
  for (int row = panel_begin * kPanelRows; row < panel_end * kPanelRows; row += rows) {
    for (int i = 0; i < tiles; ++i) {
      const int token = m * i / tiles, count = m * (i + 1) / tiles - token;
      const Choice& choice = kChoices<Format>[count - 1];
      for (int r = 0; r < rows; r += choice.rows) {
        choice.run(args, {row + r, token, nullptr, 0, 0});
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
