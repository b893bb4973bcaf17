// SPDX-License-Identifier: Apache-2.0
// The vectors of tile.inl with AVX2, and again with VNNI: eight rows each, the two of a tile from
// one panel. Included inside an unnamed namespace.

#include "cpu/level.inl"

using Vec = __m256i;
using VecF = __m256;
constexpr int kLanes = 8;
constexpr int kTileTokens = 6;  // 12 sums, two vectors of weights, what is broadcast
constexpr bool kDotsBytes = kVnni;

inline Vec Spread(int32_t value) { return _mm256_set1_epi32(value); }
inline VecF SpreadF(float value) { return _mm256_set1_ps(value); }
inline Vec LoadVec(const void* at) { return _mm256_load_si256(static_cast<const __m256i*>(at)); }
inline void StoreVec(void* at, Vec value) { _mm256_store_si256(static_cast<__m256i*>(at), value); }
inline VecF LoadF(const float* at) { return _mm256_loadu_ps(at); }
inline void StoreF(float* at, VecF value) { _mm256_storeu_ps(at, value); }

// As assembly: from the intrinsics g++ 12 makes copies of the sums and stores them in the loop.
#if defined(HEARTH_VNNI) && defined(__AVXVNNI__)
template <class Value>
[[gnu::always_inline]] inline void AddDot(Vec& sum, Vec w, Vec values) {
  if constexpr (sizeof(Value) == 1) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(values));
  } else {
    asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(values));
  }
}
#elif defined(HEARTH_VNNI)  // emulated: what stands for the intrinsics
template <class Value>
[[gnu::always_inline]] inline void AddDot(Vec& sum, Vec w, Vec values) {
  sum = sizeof(Value) == 1 ? _mm256_dpbusd_avx_epi32(sum, w, values)
                           : _mm256_dpwssd_avx_epi32(sum, w, values);
}
#else
template <class Value>
[[gnu::always_inline]] inline void AddDot(Vec& sum, Vec w, Vec values) {
  static_assert(sizeof(Value) == 2);
  const Vec products = _mm256_madd_epi16(w, values);
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products));
}
#endif

inline Vec Add(Vec a, Vec b) { return _mm256_add_epi32(a, b); }
inline Vec Sub(Vec a, Vec b) { return _mm256_sub_epi32(a, b); }
inline Vec Mul(Vec a, Vec b) { return _mm256_mullo_epi32(a, b); }
inline Vec And(Vec a, Vec b) { return _mm256_and_si256(a, b); }
inline Vec Or(Vec a, Vec b) { return _mm256_or_si256(a, b); }
template <int kBits>
inline Vec Left(Vec a) {
  return _mm256_slli_epi32(a, kBits);
}
template <int kBits>
inline Vec Right(Vec a) {
  return _mm256_srli_epi32(a, kBits);
}
inline Vec LeftBy(Vec a, Vec bits) { return _mm256_sllv_epi32(a, bits); }
inline Vec AddBytes(Vec a, Vec b) { return _mm256_add_epi8(a, b); }
inline Vec SubBytes(Vec a, Vec b) { return _mm256_sub_epi8(a, b); }
inline Vec SubPairs(Vec a, Vec b) { return _mm256_sub_epi16(a, b); }
inline Vec MulPairs(Vec a, Vec b) { return _mm256_mullo_epi16(a, b); }
// The same 16 bytes in both halves.
inline Vec Quarters(__m128i table) { return _mm256_broadcastsi128_si256(table); }
inline Vec LookUp(Vec table, Vec index) { return _mm256_shuffle_epi8(table, index); }
// 0xff in every byte that has a bit of `bit`, which is one.
inline Vec HasBit(Vec bytes, Vec bit) {
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}

// As many signed bytes as there are pairs in a vector, to 16 bits.
inline Vec WidePairs(const int8_t* at) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
// Unsigned bytes times signed ones, sums of neighbours as 16 bits.
inline Vec MulBytes(Vec codes, Vec values) { return _mm256_maddubs_epi16(codes, values); }
// Signed bytes with the signs of others; zeros where those are.
inline Vec TakeSigns(Vec values, Vec signs) { return _mm256_sign_epi8(values, signs); }
[[gnu::always_inline]] inline void AddNarrow(Vec& sum, Vec more) {
  asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(more));
}

inline VecF ToFloat(Vec a) { return _mm256_cvtepi32_ps(a); }
inline VecF AddF(VecF a, VecF b) { return _mm256_add_ps(a, b); }
inline VecF MulF(VecF a, VecF b) { return _mm256_mul_ps(a, b); }
inline VecF FmaF(VecF a, VecF b, VecF c) { return _mm256_fmadd_ps(a, b, c); }
inline VecF MinusProduct(VecF a, VecF b, VecF c) { return _mm256_fnmadd_ps(a, b, c); }
inline Vec BitsOfFloat(VecF a) { return _mm256_castps_si256(a); }
inline VecF FloatOfBits(Vec bits) { return _mm256_castsi256_ps(bits); }
// A float16, an unsigned or a signed byte a row.
inline VecF Halves(const void* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}
inline Vec WideBytes(const void* at) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(at)));
}
inline Vec WideSigned(const void* at) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(at)));
}
