// SPDX-License-Identifier: Apache-2.0
// Reading memory with vectors of 64 bytes. The hardware's own prefetcher is helped along as the
// product kernels do it, else they would beat their roofline.
#include <immintrin.h>

#include <iterator>
#include <numeric>

#include "cpu/roofline.h"

namespace hearth {

uint64_t ReadMemoryAvx512(const std::byte* at, int64_t num_bytes, int num_streams) {
  const int64_t part = num_bytes / num_streams;
  __m512i sums[4] = {};
  for (int64_t i = 0; i < part; i += 256) {
    for (int stream = 0; stream < num_streams; ++stream) {
      const std::byte* from = at + stream * part + i;
      for (int j = 0; j < 4; ++j) {
        _mm_prefetch(reinterpret_cast<const char*>(from + 4096 / num_streams + j * 64),
                     _MM_HINT_T0);
        sums[j] = _mm512_add_epi64(sums[j], _mm512_loadu_si512(from + j * 64));
      }
    }
  }
  const __m512i sum =
      _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
  // The compiler's own reduction adds signed numbers, which these may overflow.
  uint64_t lanes[8];
  _mm512_storeu_si512(lanes, sum);
  return std::accumulate(std::begin(lanes), std::end(lanes), uint64_t{0});
}

}  // namespace hearth
