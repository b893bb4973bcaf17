// SPDX-License-Identifier: Apache-2.0
// What the AMX products with MXFP4 weights share: nibbles become tiles of int8. Internal linkage.
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_amx.h"
#include "cpu/panels.h"
namespace hearth {

static constexpr int kStep = 64;  // columns that one tile instruction sums
static constexpr int kSteps = kStrip / kStep;
static constexpr int kBlockBytes = 256;  // nibbles of a block

// Twice E2M1, shifted: entry 16 * shift + code; and each of 16 bytes four times.
struct UnpackTables {
  alignas(64) int8_t codes[64];
  alignas(64) uint8_t spread[64];
};
static constexpr UnpackTables MakeUnpackTables() {
  UnpackTables tables{};
  for (int i = 0; i < 64; ++i) {
    tables.codes[i] = static_cast<int8_t>(kTwiceE2m1[i % 16] * (1 << i / 16));
    tables.spread[i] = static_cast<uint8_t>(i / 4);
  }
  return tables;
}
static constexpr UnpackTables kUnpackTables = MakeUnpackTables();

enum class FetchTo { kFirstCache, kSecondCache };

// 32 columns of a panel to half a tile, prefetching what lies `ahead` bytes further on. Past the
// end of the matrix that asks for nothing.
template <FetchTo kTo>
[[gnu::always_inline]] static inline void UnpackBlock(const uint8_t* shifts, const uint8_t* lines,
                                                      int64_t ahead, int8_t* out) {
  const __m512i codes = _mm512_load_si512(kUnpackTables.codes), low_half = _mm512_set1_epi8(15);
  const __m128i sixteen = _mm_load_si128(reinterpret_cast<const __m128i*>(shifts));
  const __m512i shift = _mm512_permutexvar_epi8(_mm512_load_si512(kUnpackTables.spread),
                                                _mm512_castsi128_si512(sixteen));
#pragma GCC unroll 4
  for (int line = 0; line < 4; ++line) {
    const uint8_t* at = lines + line * 64;
    if constexpr (kTo == FetchTo::kFirstCache) {
      _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T0);
    } else {
      _mm_prefetch(reinterpret_cast<const char*>(at + ahead), _MM_HINT_T1);
    }
    const __m512i pair = _mm512_load_si512(at);
    // 0xea: (a & low_half) | shift
    const __m512i low = _mm512_ternarylogic_epi32(pair, low_half, shift, 0xea);
    const __m512i high =
        _mm512_ternarylogic_epi32(_mm512_srli_epi16(pair, 4), low_half, shift, 0xea);
    _mm512_store_si512(out + line * 128, _mm512_permutexvar_epi8(low, codes));
    _mm512_store_si512(out + line * 128 + 64, _mm512_permutexvar_epi8(high, codes));
  }
}

}  // namespace hearth
