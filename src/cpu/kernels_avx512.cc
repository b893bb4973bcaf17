// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI: one vector is one panel of rows. Here what runs per token; products
// and attention are in kernels_avx512_matmul.cc and kernels_avx512_attend.cc.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

#include "cpu/avx512_math.inl"

uint32_t LargestMagnitude(const float* values, int n) {
  __m512i top = _mm512_setzero_si512();
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  for (int i = 0; i < n; i += 16) {
    const __m512i bits = _mm512_maskz_loadu_epi32(FirstLanes(n - i), values + i);
    top = _mm512_max_epu32(top, _mm512_and_si512(bits, magnitude));
  }
  return _mm512_reduce_max_epu32(top);
}

void SplitStrip(const float* values, int n, float inverse, int8_t* hi, int8_t* lo) {
  const __m512 factor = _mm512_set1_ps(inverse), round = _mm512_set1_ps(kRound);
  for (int i = 0; i < n; i += 16) {
    const __mmask16 lanes = FirstLanes(n - i);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, values + i);
    const __m512 whole = _mm512_sub_ps(_mm512_add_ps(_mm512_mul_ps(x, factor), round), round);
    const __m512i value = _mm512_cvttps_epi32(whole);
    const __m512i low = _mm512_srai_epi32(_mm512_slli_epi32(value, 24), 24);
    const __m512i high = _mm512_srai_epi32(_mm512_sub_epi32(value, low), 8);
    _mm_mask_storeu_epi8(lo + i, lanes, _mm512_cvtepi32_epi8(low));
    _mm_mask_storeu_epi8(hi + i, lanes, _mm512_cvtepi32_epi8(high));
  }
}

void RoundStrip(const float* values, int n, float inverse, int8_t* out) {
  const __m512 factor = _mm512_set1_ps(inverse), round = _mm512_set1_ps(kRound);
  for (int i = 0; i < n; i += 16) {
    const __mmask16 lanes = FirstLanes(n - i);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, values + i);
    const __m512 whole = _mm512_sub_ps(_mm512_add_ps(_mm512_mul_ps(x, factor), round), round);
    _mm_mask_storeu_epi8(out + i, lanes, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(whole)));
  }
}

// Sums of four neighbouring bytes each, for two blocks of 32.
__m512i QuadSums(const int8_t* values) {
  return _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1),
                             _mm512_loadu_si512(values));
}

// Sums of eight blocks: lanes of four vectors are added until each lane is a block's.
void EightBlockSums(const int8_t* values, int32_t* sums) {
  const __m512i a = QuadSums(values), b = QuadSums(values + 64);
  const __m512i c = QuadSums(values + 128), d = QuadSums(values + 192);
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  const __m512i all =
      _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  // Quarters 0 and 1 hold the even blocks, 2 and 3 the odd ones.
  const __m512i both = _mm512_add_epi32(all, _mm512_shuffle_i32x4(all, all, 0xb1));
  const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 0, 0, 0, 0, 0, 0, 0, 0);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums),
                      _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, both)));
}

// Sums of 32 neighbours each; blocks come in pairs.
void BlockSums(const int8_t* values, int num_blocks, int32_t* sums) {
  int b = 0;
  for (; b + 8 <= num_blocks; b += 8) EightBlockSums(values + b * kQuantBlock, sums + b);
  for (; b < num_blocks; b += 2) {
    const __m512i quads = QuadSums(values + b * kQuantBlock);
    sums[b] = _mm512_mask_reduce_add_epi32(0x00ff, quads);
    sums[b + 1] = _mm512_mask_reduce_add_epi32(0xff00, quads);
  }
}

#include "cpu/quantise.inl"

// Lanes past the end keep what they hold: adding a zero product could turn -0.0 into +0.0.
template <int kRows>
void Dots(const float* w, const float* x, int64_t x_stride, int cols, float* y) {
  __m512 sum[kRows];
  for (int t = 0; t < kRows; ++t) sum[t] = _mm512_setzero_ps();
  int i = 0;
  for (; i + 16 <= cols; i += 16) {
    const __m512 a = _mm512_loadu_ps(w + i);
    for (int t = 0; t < kRows; ++t) {
      sum[t] = _mm512_fmadd_ps(a, _mm512_loadu_ps(x + t * x_stride + i), sum[t]);
    }
  }
  if (i < cols) {
    const __mmask16 lanes = FirstLanes(cols - i);
    const __m512 a = _mm512_maskz_loadu_ps(lanes, w + i);
    for (int t = 0; t < kRows; ++t) {
      const __m512 b = _mm512_maskz_loadu_ps(lanes, x + t * x_stride + i);
      sum[t] = _mm512_mask3_fmadd_ps(a, b, sum[t], lanes);
    }
  }
  for (int t = 0; t < kRows; ++t) y[t] = Join16(sum[t]);
}

void DotRows(const float* w, const float* x, int64_t x_stride, int cols, int m, float* y) {
  int t = 0;
  for (; t + 8 <= m; t += 8) Dots<8>(w, x + t * x_stride, x_stride, cols, y + t);
  for (; t + 2 <= m; t += 2) Dots<2>(w, x + t * x_stride, x_stride, cols, y + t);
  for (; t < m; ++t) Dots<1>(w, x + t * x_stride, x_stride, cols, y + t);
}

void RmsNorm(const float* x, const float* gain, float eps, int n, float* y) {
  float squares;
  Dots<1>(x, x, 0, n, &squares);
  const float mean = squares / static_cast<float>(n);
  const __m512 scale = _mm512_set1_ps(1.0f / __builtin_sqrtf(mean + eps));
  for (int i = 0; i < n; i += 16) {
    const __mmask16 lanes = FirstLanes(n - i);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), scale);
    _mm512_mask_storeu_ps(y + i, lanes,
                          _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(lanes, gain + i)));
  }
}

__m512 Silu16(__m512 x, __m512 alpha) {
  const __m512 minus = _mm512_xor_ps(_mm512_mul_ps(alpha, x), _mm512_set1_ps(-0.0f));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), Exp16(minus)));
}

void Glu(const float* gate, const float* up, float alpha, float limit, int n, float* z) {
  const __m512 high = _mm512_set1_ps(limit), low = _mm512_set1_ps(-limit);
  const __m512 factor = _mm512_set1_ps(alpha);
  for (int i = 0; i < n; i += 16) {
    const __mmask16 lanes = FirstLanes(n - i);
    __m512 g = _mm512_maskz_loadu_ps(lanes, gate + i), u = _mm512_maskz_loadu_ps(lanes, up + i);
    if (limit > 0.0f) {  // min and max hand on their second operand when it is NaN
      g = _mm512_min_ps(high, g);
      u = _mm512_max_ps(low, _mm512_min_ps(high, u));
      u = _mm512_add_ps(u, _mm512_set1_ps(1.0f));
    }
    _mm512_mask_storeu_ps(z + i, lanes, _mm512_mul_ps(Silu16(g, factor), u));
  }
}

struct Turned {
  __m512 a, b;
};
Turned Turn(__m512 a, __m512 b, __m512 cos, __m512 sin) {
  return {_mm512_fmsub_ps(a, cos, _mm512_mul_ps(b, sin)),
          _mm512_fmadd_ps(b, cos, _mm512_mul_ps(a, sin))};
}

void RopeHalves(float* head, const float* cos, const float* sin, int pairs) {
  for (int i = 0; i < pairs; i += 16) {
    const __mmask16 lanes = FirstLanes(pairs - i);
    const Turned turned =
        Turn(_mm512_maskz_loadu_ps(lanes, head + i), _mm512_maskz_loadu_ps(lanes, head + pairs + i),
             _mm512_maskz_loadu_ps(lanes, cos + i), _mm512_maskz_loadu_ps(lanes, sin + i));
    _mm512_mask_storeu_ps(head + i, lanes, turned.a);
    _mm512_mask_storeu_ps(head + pairs + i, lanes, turned.b);
  }
}

void RopeNeighbours(float* head, const float* cos, const float* sin, int pairs) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i second =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  for (int i = 0; i < pairs; i += 16) {
    const int left = 2 * (pairs - i);
    const __mmask16 lanes = FirstLanes(pairs - i), lanes0 = FirstLanes(left);
    const __mmask16 lanes1 = left > 16 ? FirstLanes(left - 16) : __mmask16{0};
    const __m512 x0 = _mm512_maskz_loadu_ps(lanes0, head + 2 * i);
    const __m512 x1 = _mm512_maskz_loadu_ps(lanes1, head + 2 * i + 16);
    const Turned turned =
        Turn(_mm512_permutex2var_ps(x0, even, x1), _mm512_permutex2var_ps(x0, odd, x1),
             _mm512_maskz_loadu_ps(lanes, cos + i), _mm512_maskz_loadu_ps(lanes, sin + i));
    _mm512_mask_storeu_ps(head + 2 * i, lanes0, _mm512_permutex2var_ps(turned.a, first, turned.b));
    _mm512_mask_storeu_ps(head + 2 * i + 16, lanes1,
                          _mm512_permutex2var_ps(turned.a, second, turned.b));
  }
}

void Rope(float* head, const float* cos, const float* sin, int n_dims, bool neighbours) {
  (neighbours ? RopeNeighbours : RopeHalves)(head, cos, sin, n_dims / 2);
}

void AddScaled(const float* x, float factor, int n, float* y) {
  const __m512 by = _mm512_set1_ps(factor);
  for (int i = 0; i < n; i += 16) {
    const __mmask16 lanes = FirstLanes(n - i);
    const __m512 sum = _mm512_fmadd_ps(by, _mm512_maskz_loadu_ps(lanes, x + i),
                                       _mm512_maskz_loadu_ps(lanes, y + i));
    _mm512_mask_storeu_ps(y + i, lanes, sum);
  }
}

// The sum runs one by one, in order, as the definition has it; n is the number of experts.
bool Softmax(float* values, int n) {
  float top = values[0];
  for (int i = 0; i < n; ++i) {
    if (!(values[i] <= top)) top = values[i];
  }
  float sum = 0.0f;
  for (int i = 0; i < n; i += 16) {
    const __mmask16 lanes = FirstLanes(n - i);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, values + i);
    _mm512_mask_storeu_ps(values + i, lanes, Exp16(_mm512_sub_ps(x, _mm512_set1_ps(top))));
    for (int j = i; j < n && j < i + 16; ++j) sum += values[j];
  }
  for (int i = 0; i < n; i += 16) {
    const __mmask16 lanes = FirstLanes(n - i);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, values + i);
    _mm512_mask_storeu_ps(values + i, lanes, _mm512_div_ps(x, _mm512_set1_ps(sum)));
  }
  return sum == sum;
}

}  // namespace

const KernelTable& Avx512VnniKernels() {
  static const KernelTable kTable = [] {
    KernelTable table = {"avx512vnni", Quantise, DotRows,   nullptr, nullptr, RmsNorm,
                         Glu,          Rope,     AddScaled, Softmax, nullptr, {}};
    table.fast = ScalarKernels().fast;  // what is not replaced below
    AddAvx512Attend(table);
    AddAvx512AttendInt8(table);
    AddAvx512Matmuls<false>(table);
    AddAvx512Supers<false>(table);
    AddAvx512Blocks(table);
    AddAvx512Floats(table);
    AddAvx512Tiles(table);
    AddAvx512TilesBytes(table);
    AddAvx512TilesSuper(table);
    return table;
  }();
  return kTable;
}

}  // namespace hearth
