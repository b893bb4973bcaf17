// SPDX-License-Identifier: Apache-2.0
// What the AVX2 files share: canon.inl's arithmetic on eight lanes; sixteen are a pair of vectors.
// Included after it, inside the same unnamed namespace.

// JoinLanes of lanes 0..7 and 8..15 without leaving registers.
inline float JoinPair(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline __m256 Exp8(__m256 x) {
  const __m256 not_tiny = _mm256_cmp_ps(x, _mm256_set1_ps(kExpLow), _CMP_NLT_UQ);
  const __m256 top = _mm256_min_ps(_mm256_set1_ps(kExpHigh), x);  // NaN: the second operand
  const __m256 round = _mm256_set1_ps(kRound);
  const __m256 n = _mm256_sub_ps(_mm256_fmadd_ps(top, _mm256_set1_ps(kLog2E), round), round);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), top);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), r);
  __m256 p = _mm256_set1_ps(kExpC[6]);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC[5]));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC[4]));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC[3]));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC[2]));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC[1]));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpC[0]));
  const __m256i power =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_and_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(power)), not_tiny);
}
