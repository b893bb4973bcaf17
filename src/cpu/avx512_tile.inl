// SPDX-License-Identifier: Apache-2.0
// The vectors of tile.inl with AVX-512: sixteen rows each, the two of a tile from two panels.

using Vec = __m512i;
using VecF = __m512;
constexpr int kLanes = 16;
constexpr int kTileTokens = 12;  // 24 sums, two vectors of weights, what is broadcast
constexpr bool kDotsBytes = true;

inline Vec Spread(int32_t value) { return _mm512_set1_epi32(value); }
inline VecF SpreadF(float value) { return _mm512_set1_ps(value); }
inline Vec LoadVec(const void* at) { return _mm512_load_si512(at); }
inline void StoreVec(void* at, Vec value) { _mm512_store_si512(at, value); }
inline VecF LoadF(const float* at) { return _mm512_loadu_ps(at); }
inline void StoreF(float* at, VecF value) { _mm512_storeu_ps(at, value); }

// As assembly: from the intrinsics g++ 12 makes copies of the sums and stores them in the loop.
template <class Value>
[[gnu::always_inline]] inline void AddDot(Vec& sum, Vec w, Vec values) {
  if constexpr (sizeof(Value) == 1) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(values));
  } else {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(values));
  }
}

inline Vec Add(Vec a, Vec b) { return _mm512_add_epi32(a, b); }
inline Vec Sub(Vec a, Vec b) { return _mm512_sub_epi32(a, b); }
inline Vec Mul(Vec a, Vec b) { return _mm512_mullo_epi32(a, b); }
inline Vec And(Vec a, Vec b) { return _mm512_and_si512(a, b); }
inline Vec Or(Vec a, Vec b) { return _mm512_or_si512(a, b); }
template <int kBits>
inline Vec Left(Vec a) {
  return _mm512_slli_epi32(a, kBits);
}
template <int kBits>
inline Vec Right(Vec a) {
  return _mm512_srli_epi32(a, kBits);
}
inline Vec LeftBy(Vec a, Vec bits) { return _mm512_sllv_epi32(a, bits); }
inline Vec AddBytes(Vec a, Vec b) { return _mm512_add_epi8(a, b); }
inline Vec SubBytes(Vec a, Vec b) { return _mm512_sub_epi8(a, b); }
inline Vec SubPairs(Vec a, Vec b) { return _mm512_sub_epi16(a, b); }
inline Vec MulPairs(Vec a, Vec b) { return _mm512_mullo_epi16(a, b); }
// The same 16 bytes in every quarter.
inline Vec Quarters(__m128i table) { return _mm512_broadcast_i32x4(table); }
inline Vec LookUp(Vec table, Vec index) { return _mm512_shuffle_epi8(table, index); }
// 0xff in every byte that has a bit of `bit`.
inline Vec HasBit(Vec bytes, Vec bit) {
  return _mm512_movm_epi8(_mm512_test_epi8_mask(bytes, bit));
}

// As many signed bytes as there are pairs in a vector, to 16 bits.
inline Vec WidePairs(const int8_t* at) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}
// Unsigned bytes times signed ones, sums of neighbours as 16 bits.
inline Vec MulBytes(Vec codes, Vec values) { return _mm512_maddubs_epi16(codes, values); }
// Signed bytes with the signs of others; zeros where those are.
inline Vec TakeSigns(Vec values, Vec signs) {
  const Vec some = _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(signs, signs), values);
  return _mm512_mask_sub_epi8(some, _mm512_movepi8_mask(signs), Spread(0), some);
}
[[gnu::always_inline]] inline void AddNarrow(Vec& sum, Vec more) {
  asm("vpaddw %1, %0, %0" : "+v"(sum) : "v"(more));
}

inline VecF ToFloat(Vec a) { return _mm512_cvtepi32_ps(a); }
inline VecF AddF(VecF a, VecF b) { return _mm512_add_ps(a, b); }
inline VecF MulF(VecF a, VecF b) { return _mm512_mul_ps(a, b); }
inline VecF FmaF(VecF a, VecF b, VecF c) { return _mm512_fmadd_ps(a, b, c); }
inline VecF MinusProduct(VecF a, VecF b, VecF c) { return _mm512_fnmadd_ps(a, b, c); }
inline Vec BitsOfFloat(VecF a) { return _mm512_castps_si512(a); }
inline VecF FloatOfBits(Vec bits) { return _mm512_castsi512_ps(bits); }
// A float16, an unsigned or a signed byte a row.
inline VecF Halves(const void* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
}
inline Vec WideBytes(const void* at) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}
inline Vec WideSigned(const void* at) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}
