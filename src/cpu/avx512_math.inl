// SPDX-License-Identifier: Apache-2.0
// What the AVX-512 files share: canon.inl's arithmetic on sixteen lanes. Included after it, inside
// the same unnamed namespace.

// The first n lanes, n up to 16.
inline __mmask16 FirstLanes(int n) {
  return n >= 16 ? __mmask16{0xffff} : static_cast<__mmask16>((1u << n) - 1u);
}

// JoinLanes without leaving registers.
inline float Join16(__m512 lanes) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline __m512 Exp16(__m512 x) {
  const __mmask16 not_tiny = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpLow), _CMP_NLT_UQ);
  const __m512 top = _mm512_min_ps(_mm512_set1_ps(kExpHigh), x);  // NaN: the second operand
  const __m512 round = _mm512_set1_ps(kRound);
  const __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(top, _mm512_set1_ps(kLog2E), round), round);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2High), top);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Low), r);
  __m512 p = _mm512_set1_ps(kExpC[6]);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC[5]));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC[4]));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC[3]));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC[2]));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC[1]));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kExpC[0]));
  const __m512i power =
      _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvttps_epi32(n), _mm512_set1_epi32(127)), 23);
  return _mm512_maskz_mul_ps(not_tiny, p, _mm512_castsi512_ps(power));
}
