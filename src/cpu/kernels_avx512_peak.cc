// SPDX-License-Identifier: Apache-2.0
// The most int8 products a second that VNNI gives: registers only, enough sums in flight to hide
// the latency of five cycles on two ports.
#include <immintrin.h>

#include <iterator>
#include <numeric>

#include "cpu/roofline.h"

namespace hearth {

int32_t RepeatVnniAvx512(int64_t rounds) {
  constexpr int kSums = 12;
  static_assert(kVnniOps == int64_t{2} * 64 * kSums * 2);
  __m512i sums[kSums] = {};
  const __m512i a = _mm512_set1_epi32(0x7f3b1d05), b = _mm512_set1_epi32(0x11f3e72b);
  for (int64_t i = 0; i < rounds; ++i) {
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, b, a);
  }
  __m512i all = sums[0];
  for (int i = 1; i < kSums; ++i) all = _mm512_add_epi32(all, sums[i]);
  // The compiler's own reduction adds signed numbers, which these may overflow.
  uint32_t lanes[16];
  _mm512_storeu_si512(lanes, all);
  return static_cast<int32_t>(std::accumulate(std::begin(lanes), std::end(lanes), uint32_t{0}));
}

}  // namespace hearth
