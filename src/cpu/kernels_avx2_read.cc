// SPDX-License-Identifier: Apache-2.0
// Reading memory with vectors of 32 bytes; otherwise as kernels_avx512_read.cc.
#include <immintrin.h>

#include "cpu/roofline.h"

namespace hearth {

uint64_t ReadMemoryAvx2(const std::byte* at, int64_t num_bytes, int num_streams) {
  const int64_t part = num_bytes / num_streams;
  __m256i sums[4] = {};
  for (int64_t i = 0; i < part; i += 256) {
    for (int stream = 0; stream < num_streams; ++stream) {
      const std::byte* from = at + stream * part + i;
      for (int j = 0; j < 8; ++j) {
        if (j % 2 == 0) {
          _mm_prefetch(reinterpret_cast<const char*>(from + 4096 / num_streams + j * 32),
                       _MM_HINT_T0);
        }
        const auto* vector = reinterpret_cast<const __m256i*>(from + j * 32);
        sums[j % 4] = _mm256_add_epi64(sums[j % 4], _mm256_loadu_si256(vector));
      }
    }
  }
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(half)) +
         static_cast<uint64_t>(_mm_extract_epi64(half, 1));
}

}  // namespace hearth
