// SPDX-License-Identifier: Apache-2.0
// AVX2, FMA and F16C: sixteen lanes as two vectors of eight. Here what runs per token; products and
// attention are in kernels_avx2_matmul.cc and kernels_avx2_attend.cc. Odd ends run as scalars.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/avx2_math.inl"

uint32_t LargestMagnitude(const float* values, int n) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i top8 = _mm256_setzero_si256();
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    top8 = _mm256_max_epu32(top8, _mm256_and_si256(bits, magnitude));
  }
  __m128i top4 = _mm_max_epu32(_mm256_castsi256_si128(top8), _mm256_extracti128_si256(top8, 1));
  top4 = _mm_max_epu32(top4, _mm_shuffle_epi32(top4, 0x4e));
  top4 = _mm_max_epu32(top4, _mm_shuffle_epi32(top4, 0xb1));
  auto top = static_cast<uint32_t>(_mm_cvtsi128_si32(top4));
  for (; i < n; ++i) {
    const uint32_t bits = BitsOf(values[i]) & 0x7fffffffu;
    top = bits > top ? bits : top;
  }
  return top;
}

// The low byte of each of eight 32-bit lanes.
inline void StoreBytes(__m256i lanes, int8_t* to) {
  const __m256i pick = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const __m256i bytes = _mm256_shuffle_epi8(lanes, pick);
  const __m128i eight =
      _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), eight);
}

void SplitStrip(const float* values, int n, float inverse, int8_t* hi, int8_t* lo) {
  const __m256 factor = _mm256_set1_ps(inverse), round = _mm256_set1_ps(kRound);
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values + i), factor);
    const __m256i value = _mm256_cvttps_epi32(_mm256_sub_ps(_mm256_add_ps(scaled, round), round));
    const __m256i low = _mm256_srai_epi32(_mm256_slli_epi32(value, 24), 24);
    StoreBytes(low, lo + i);
    StoreBytes(_mm256_srai_epi32(_mm256_sub_epi32(value, low), 8), hi + i);
  }
  for (; i < n; ++i) {
    const auto value = static_cast<int32_t>((values[i] * inverse + kRound) - kRound);
    lo[i] = static_cast<int8_t>(value & 255);
    hi[i] = static_cast<int8_t>((value - lo[i]) / 256);
  }
}

// Eight values by `factor`, rounded to the nearest integers.
inline __m256i Rounded(const float* values, __m256 factor) {
  const __m256 round = _mm256_set1_ps(kRound);
  const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(values), factor);
  return _mm256_cvttps_epi32(_mm256_sub_ps(_mm256_add_ps(scaled, round), round));
}

void RoundStrip(const float* values, int n, float inverse, int8_t* out) {
  const __m256 factor = _mm256_set1_ps(inverse);
  int i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i a =
        _mm256_packs_epi32(Rounded(values + i, factor), Rounded(values + i + 8, factor));
    const __m256i b =
        _mm256_packs_epi32(Rounded(values + i + 16, factor), Rounded(values + i + 24, factor));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), order));
  }
  for (; i < n; ++i) out[i] = static_cast<int8_t>((values[i] * inverse + kRound) - kRound);
}

void BlockSums(const int8_t* values, int num_blocks, int32_t* sums) {
  const __m256i bytes = _mm256_set1_epi8(1), words = _mm256_set1_epi16(1);
  for (int b = 0; b < num_blocks; ++b) {
    const __m256i block =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + b * kQuantBlock));
    const __m256i quads = _mm256_madd_epi16(_mm256_maddubs_epi16(bytes, block), words);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(quads), _mm256_extracti128_si256(quads, 1));
    four = _mm_hadd_epi32(four, four);
    sums[b] = _mm_cvtsi128_si32(_mm_hadd_epi32(four, four));
  }
}

#include "cpu/quantise.inl"

template <int kRows>
void Dots(const float* w, const float* x, int64_t x_stride, int cols, float* y) {
  __m256 low[kRows], high[kRows];
#pragma GCC unroll 4
  for (int t = 0; t < kRows; ++t) low[t] = high[t] = _mm256_setzero_ps();
  int i = 0;
  for (; i + 16 <= cols; i += 16) {
    const __m256 a = _mm256_loadu_ps(w + i), b = _mm256_loadu_ps(w + i + 8);
#pragma GCC unroll 4
    for (int t = 0; t < kRows; ++t) {
      low[t] = _mm256_fmadd_ps(a, _mm256_loadu_ps(x + t * x_stride + i), low[t]);
      high[t] = _mm256_fmadd_ps(b, _mm256_loadu_ps(x + t * x_stride + i + 8), high[t]);
    }
  }
#pragma GCC unroll 4
  for (int t = 0; t < kRows; ++t) {
    alignas(32) float lanes[16];
    _mm256_store_ps(lanes, low[t]);
    _mm256_store_ps(lanes + 8, high[t]);
    for (int j = i; j < cols; ++j) {
      lanes[j - i] = FusedMulAdd(w[j], x[t * x_stride + j], lanes[j - i]);
    }
    y[t] = JoinPair(_mm256_load_ps(lanes), _mm256_load_ps(lanes + 8));
  }
}

void DotRows(const float* w, const float* x, int64_t x_stride, int cols, int m, float* y) {
  int t = 0;
  for (; t + 4 <= m; t += 4) Dots<4>(w, x + t * x_stride, x_stride, cols, y + t);
  for (; t < m; ++t) Dots<1>(w, x + t * x_stride, x_stride, cols, y + t);
}

void RmsNorm(const float* x, const float* gain, float eps, int n, float* y) {
  float squares;
  Dots<1>(x, x, 0, n, &squares);
  const float mean = squares / static_cast<float>(n);
  const float scale = 1.0f / __builtin_sqrtf(mean + eps);
  const __m256 scale8 = _mm256_set1_ps(scale);
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), scale8);
    _mm256_storeu_ps(y + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(gain + i)));
  }
  for (; i < n; ++i) y[i] = (x[i] * scale) * gain[i];
}

inline __m256 Glu8(__m256 g, __m256 u, float alpha, float limit) {
  const __m256 one = _mm256_set1_ps(1.0f);
  if (limit > 0.0f) {  // min and max hand on their second operand when it is NaN
    g = _mm256_min_ps(_mm256_set1_ps(limit), g);
    u = _mm256_max_ps(_mm256_set1_ps(-limit), _mm256_min_ps(_mm256_set1_ps(limit), u));
    u = _mm256_add_ps(u, one);
  }
  const __m256 minus =
      _mm256_xor_ps(_mm256_mul_ps(_mm256_set1_ps(alpha), g), _mm256_set1_ps(-0.0f));
  return _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(one, Exp8(minus))), u);
}

void Glu(const float* gate, const float* up, float alpha, float limit, int n, float* z) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(z + i, Glu8(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i), alpha, limit));
  }
  if (i == n) return;
  alignas(32) float g[8] = {}, u[8] = {};
  for (int j = i; j < n; ++j) {
    g[j - i] = gate[j];
    u[j - i] = up[j];
  }
  _mm256_store_ps(g, Glu8(_mm256_load_ps(g), _mm256_load_ps(u), alpha, limit));
  for (int j = i; j < n; ++j) z[j] = g[j - i];
}

void Rope(float* head, const float* cos, const float* sin, int n_dims, bool neighbours) {
  const int pairs = n_dims / 2;
  int i = 0;
  for (; i + 8 <= pairs && !neighbours; i += 8) {
    const __m256 a = _mm256_loadu_ps(head + i), b = _mm256_loadu_ps(head + pairs + i);
    const __m256 c = _mm256_loadu_ps(cos + i), s = _mm256_loadu_ps(sin + i);
    _mm256_storeu_ps(head + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
    _mm256_storeu_ps(head + pairs + i, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
  }
  for (; i + 4 <= pairs && neighbours; i += 4) {
    // Each cosine and sine twice; the partner of every value beside it.
    const __m256 x = _mm256_loadu_ps(head + 2 * i), partner = _mm256_permute_ps(x, 0xb1);
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cos + i)), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sin + i)), twice);
    _mm256_storeu_ps(head + 2 * i, _mm256_fmaddsub_ps(x, c, _mm256_mul_ps(partner, s)));
  }
  for (; i < pairs; ++i) {
    float& a = head[neighbours ? 2 * i : i];
    float& b = head[neighbours ? 2 * i + 1 : i + pairs];
    const float old_a = a, old_b = b;
    a = FusedMulAdd(old_a, cos[i], -(old_b * sin[i]));
    b = FusedMulAdd(old_b, cos[i], old_a * sin[i]);
  }
}

void AddScaled(const float* x, float factor, int n, float* y) {
  const __m256 by = _mm256_set1_ps(factor);
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_fmadd_ps(by, _mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
  }
  for (; i < n; ++i) y[i] = FusedMulAdd(factor, x[i], y[i]);
}

// The sum runs one by one, in order, as the definition has it; n is the number of experts.
bool Softmax(float* values, int n) {
  float top = values[0];
  for (int i = 0; i < n; ++i) {
    if (!(values[i] <= top)) top = values[i];
  }
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(values + i,
                     Exp8(_mm256_sub_ps(_mm256_loadu_ps(values + i), _mm256_set1_ps(top))));
  }
  for (; i < n; ++i) values[i] = Exp(values[i] - top);
  float sum = 0.0f;
  for (int j = 0; j < n; ++j) sum += values[j];
  for (int j = 0; j < n; ++j) values[j] /= sum;
  return sum == sum;
}

}  // namespace

const KernelTable& Avx2Kernels() {
  static const KernelTable kTable = [] {
    KernelTable table = {"avx2", Quantise, DotRows,   nullptr, nullptr, RmsNorm,
                         Glu,    Rope,     AddScaled, Softmax, nullptr, {}};
    table.fast = ScalarKernels().fast;  // what is not replaced below
    AddAvx2Attend(table);
    AddAvx2AttendInt8<false>(table);
    AddAvx2Matmuls<false>(table);
    AddAvx2Supers<false>(table);
    AddAvx2Blocks<false>(table);
    AddAvx2Floats(table);
    AddAvx2Tiles<false>(table);
    AddAvx2TilesBytes<false>(table);
    AddAvx2TilesSuper<false>(table);
    return table;
  }();
  return kTable;
}

}  // namespace hearth
