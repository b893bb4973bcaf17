// SPDX-License-Identifier: Apache-2.0
// Products with F32, F16 and BF16 weights on AVX2: the sixteen lanes of a sum are two vectors. They
// never meet before the end, so that tiles of several tokens take one after the other and have all
// registers for it.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

// Bytes of weights asked for ahead of use.
constexpr int kAhead = 4096;
constexpr int kRows = 4;  // of a tile

// What the formats differ in: the bytes of 32 columns of a row, and eight of them as floats, from
// column 16 * half + 8 * part on.
struct F32 {
  static constexpr int kBytes = 128;
  static __m256 Load(const uint8_t* at, int half, int part) {
    return _mm256_load_ps(reinterpret_cast<const float*>(at) + 16 * half + 8 * part);
  }
};
struct F16 {
  static constexpr int kBytes = 64;
  static __m256 Load(const uint8_t* at, int half, int part) {
    const auto* values = reinterpret_cast<const __m128i*>(at + 32 * half + 16 * part);
    return _mm256_cvtph_ps(_mm_load_si128(values));
  }
};
struct Bf16 {
  static constexpr int kBytes = 64;
  static __m256 Load(const uint8_t* at, int half, int part) {
    const __m256i pairs = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + 32 * part));
    const __m256i high = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return _mm256_castsi256_ps(half == 0 ? _mm256_slli_epi32(pairs, 16)
                                         : _mm256_and_si256(pairs, high));
  }
};

// JoinLanes of four sums at once, from lanes that were added to the eight above them.
inline __m128 Join4(__m256 a, __m256 b, __m256 c, __m256 d) {
  const auto four = [](__m256 x, __m256 y) {  // of x in the lower half, of y in the upper one
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  };
  const __m256 ab = four(a, b), cd = four(c, d);
  const __m256 two =
      _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  const __m256 one =
      _mm256_add_ps(_mm256_shuffle_ps(two, two, 0x88), _mm256_shuffle_ps(two, two, 0xdd));
  return _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1));
}

// Lanes 8 * first .. 8 * (first + kParts) - 1 of four rows and kTokens tokens.
template <class Format, int kTokens, int kParts>
[[gnu::always_inline]] inline void SumLanes(const uint8_t* at, const float* const (&x)[kTokens],
                                            int cols, int first,
                                            __m256 (&sum)[kParts][kRows][kTokens]) {
  for (int column = 0; column < cols; column += kQuantBlock, at += kPanelRows * Format::kBytes) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows * Format::kBytes; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + kAhead + i), _MM_HINT_T0);
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        __m256 values[kTokens];
#pragma GCC unroll 4
        for (int t = 0; t < kTokens; ++t) {
          values[t] = _mm256_loadu_ps(x[t] + column + 16 * half + 8 * (first + part));
        }
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const __m256 weight = Format::Load(at + r * Format::kBytes, half, first + part);
#pragma GCC unroll 4
          for (int t = 0; t < kTokens; ++t) {
            sum[part][r][t] = _mm256_fmadd_ps(weight, values[t], sum[part][r][t]);
          }
        }
      }
    }
  }
}

template <int kParts, int kTokens>
inline void Clear(__m256 (&sum)[kParts][kRows][kTokens]) {
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) sum[part][r][t] = _mm256_setzero_ps();
    }
  }
}

template <class Format, int kTokens>
void RunTile(const MatmulArgs& args, int row, int token) {
  const PackedMatrix& w = *args.w;
  const uint8_t* at = w.data + row / kPanelRows * w.panel_bytes + row % kPanelRows * Format::kBytes;
  const float* x[kTokens];
  for (int t = 0; t < kTokens; ++t) x[t] = args.xf + (token + t) * args.xf_stride;
  __m256 eight[kRows][kTokens];  // lanes added to the eight above them
  if constexpr (kTokens == 1) {  // bound by memory: both at once
    __m256 sum[2][kRows][kTokens];
    Clear(sum);
    SumLanes<Format, kTokens, 2>(at, x, w.cols, 0, sum);
    for (int r = 0; r < kRows; ++r) eight[r][0] = _mm256_add_ps(sum[0][r][0], sum[1][r][0]);
  } else {
    __m256 sum[1][kRows][kTokens];
    Clear(sum);
    SumLanes<Format, kTokens, 1>(at, x, w.cols, 0, sum);
    for (int r = 0; r < kRows; ++r) {
      for (int t = 0; t < kTokens; ++t) eight[r][t] = sum[0][r][t];
    }
    Clear(sum);
    SumLanes<Format, kTokens, 1>(at, x, w.cols, 1, sum);
    for (int r = 0; r < kRows; ++r) {
      for (int t = 0; t < kTokens; ++t) eight[r][t] = _mm256_add_ps(eight[r][t], sum[0][r][t]);
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    __m128 y = Join4(eight[0][t], eight[1][t], eight[2][t], eight[3][t]);
    if (args.bias != nullptr) y = _mm_add_ps(y, _mm_loadu_ps(args.bias + row));
    _mm_storeu_ps(args.y + (token + t) * args.y_stride + row, y);
  }
}

using TileFunction = void (*)(const MatmulArgs&, int row, int token);
constexpr int kMostTokens = 3;
template <class Format>
constexpr TileFunction kTiles[kMostTokens] = {RunTile<Format, 1>, RunTile<Format, 2>,
                                              RunTile<Format, 3>};

// Four rows of weights stay in L1 while tokens pass.
template <class Format>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  const int m = args.x->m, tiles = (m + kMostTokens - 1) / kMostTokens;
  for (int row = panel_begin * kPanelRows; row < panel_end * kPanelRows; row += kRows) {
    for (int i = 0; i < tiles; ++i) {
      const int token = m * i / tiles, count = m * (i + 1) / tiles - token;
      kTiles<Format>[count - 1](args, row, token);
    }
  }
}

}  // namespace

void AddAvx2Floats(KernelTable& table) noexcept {
  table.matmul[static_cast<int>(PackKind::kF32)] = Matmul<F32>;
  table.matmul[static_cast<int>(PackKind::kF16)] = Matmul<F16>;
  table.matmul[static_cast<int>(PackKind::kBf16)] = Matmul<Bf16>;
}

}  // namespace hearth
