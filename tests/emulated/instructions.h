// SPDX-License-Identifier: Apache-2.0
// Tiles and byte permutations in plain AVX-512, and AVX-VNNI's dot products in AVX-512's coding,
// for processors that lack AMX, VBMI or AVX-VNNI. Included before every kernel of the emulated
// build, so that the kernels' own text runs with these in their place.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hearth::emulated {

constexpr int kRows = 16, kRowBytes = 64;

struct Tile {
  int rows = 0, row_bytes = 0;
  alignas(64) int8_t bytes[kRows][kRowBytes];
};

inline Tile& TileAt(int index) {
  thread_local Tile tiles[8];
  return tiles[index];
}

// What the processor would answer with a general protection fault.
inline void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "emulated tiles: %s\n", what);
  std::abort();
}

// The 64 bytes of a configuration: palette, start row, row bytes at 16, rows at 48.
inline void LoadConfig(const void* config) {
  const auto* bytes = static_cast<const uint8_t*>(config);
  Require(bytes[0] == 1, "a palette other than 1");
  for (int i = 0; i < 8; ++i) {
    Tile& tile = TileAt(i);
    uint16_t row_bytes;
    std::memcpy(&row_bytes, bytes + 16 + 2 * i, 2);
    tile.rows = bytes[48 + i];
    tile.row_bytes = row_bytes;
    Require(tile.rows <= kRows && tile.row_bytes <= kRowBytes, "a tile larger than 16 rows of 64");
    std::memset(tile.bytes, 0, sizeof(tile.bytes));
  }
}

inline void Release() {
  for (int i = 0; i < 8; ++i) TileAt(i) = Tile{};
}

inline Tile& Configured(int index) {
  Tile& tile = TileAt(index);
  Require(tile.rows > 0 && tile.row_bytes > 0, "a tile that is not configured");
  return tile;
}

inline void Zero(int index) { std::memset(Configured(index).bytes, 0, kRows * kRowBytes); }

inline void Load(int index, const void* from, int64_t stride) {
  Tile& tile = Configured(index);
  std::memset(tile.bytes, 0, sizeof(tile.bytes));
  for (int row = 0; row < tile.rows; ++row) {
    std::memcpy(tile.bytes[row], static_cast<const int8_t*>(from) + row * stride,
                static_cast<size_t>(tile.row_bytes));
  }
}

inline void Store(int index, void* to, int64_t stride) {
  const Tile& tile = Configured(index);
  for (int row = 0; row < tile.rows; ++row) {
    std::memcpy(static_cast<int8_t*>(to) + row * stride, tile.bytes[row],
                static_cast<size_t>(tile.row_bytes));
  }
}

// sums[m][n] += a[m][4k + i] * b[k][4n + i], all signed.
inline void DotSigned(int sums_index, int a_index, int b_index) {
  Tile& sums = Configured(sums_index);
  const Tile &a = Configured(a_index), &b = Configured(b_index);
  Require(sums.rows == a.rows && sums.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows,
          "products of tiles whose shapes do not fit");
  const __m512i ones = _mm512_set1_epi16(1);
  for (int m = 0; m < a.rows; ++m) {
    __m512i row = _mm512_load_si512(sums.bytes[m]);
    for (int k = 0; k < b.rows; ++k) {
      int32_t four;
      std::memcpy(&four, &a.bytes[m][4 * k], 4);
      // Even and odd bytes widened to 16 bits: exact, in whatever order they are added.
      const __m512i x = _mm512_set1_epi32(four), y = _mm512_load_si512(b.bytes[k]);
      const __m512i even = _mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8),
                                              _mm512_srai_epi16(_mm512_slli_epi16(y, 8), 8));
      const __m512i odd = _mm512_mullo_epi16(_mm512_srai_epi16(x, 8), _mm512_srai_epi16(y, 8));
      row = _mm512_add_epi32(
          row, _mm512_add_epi32(_mm512_madd_epi16(even, ones), _mm512_madd_epi16(odd, ones)));
    }
    _mm512_store_si512(sums.bytes[m], row);
  }
}

// Bytes of `table` chosen by the low six bits of each index: 16 at a time, then the fitting
// quarter.
inline __m512i PermuteBytes(__m512i indices, __m512i table) {
  const __m512i quarter = _mm512_and_si512(indices, _mm512_set1_epi8(0x30));
  const __m512i low = _mm512_and_si512(indices, _mm512_set1_epi8(0x0f));
  alignas(64) uint8_t bytes[64];
  _mm512_store_si512(bytes, table);
  __m512i out = _mm512_setzero_si512();
  for (int i = 0; i < 4; ++i) {
    const __m512i part =
        _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<__m128i*>(bytes) + i));
    const __mmask64 here =
        _mm512_cmpeq_epi8_mask(quarter, _mm512_set1_epi8(static_cast<char>(16 * i)));
    out = _mm512_mask_shuffle_epi8(out, here, part, low);
  }
  return out;
}

}  // namespace hearth::emulated

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbssd
#define _tile_loadconfig(config) ::hearth::emulated::LoadConfig(config)
#define _tile_release() ::hearth::emulated::Release()
#define _tile_zero(tile) ::hearth::emulated::Zero(tile)
#define _tile_loadd(tile, from, stride) ::hearth::emulated::Load(tile, from, stride)
#define _tile_stream_loadd(tile, from, stride) ::hearth::emulated::Load(tile, from, stride)
#define _tile_stored(tile, to, stride) ::hearth::emulated::Store(tile, to, stride)
#define _tile_dpbssd(sums, a, b) ::hearth::emulated::DotSigned(sums, a, b)
#define _mm512_permutexvar_epi8(indices, table) ::hearth::emulated::PermuteBytes(indices, table)
#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32(sums, a, b) _mm256_dpbusd_epi32(sums, a, b)
#undef _mm256_dpwssd_avx_epi32
#define _mm256_dpwssd_avx_epi32(sums, a, b) _mm256_dpwssd_epi32(sums, a, b)
