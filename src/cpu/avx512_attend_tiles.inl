// SPDX-License-Identifier: Apache-2.0
// The loops of kernels_avx512_attend.cc that stay in registers: scores, weights and values of a
// tile of rows. Included inside its unnamed namespace, after avx512_attend_rows.inl.

constexpr int kBuffered = 8;  // blocks that are widened together
constexpr int kFewRows = 16;  // up to here each tile widens for itself
constexpr int kAhead = 2;     // blocks between what is read and what memory is asked for

// What K and V are stored as; floats are what they were widened to.
template <class T>
constexpr bool kIsCode = sizeof(T) <= 2;

inline __m512 Widened(const int16_t* codes) {
  const __m256i sixteen = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(sixteen));
}
inline __m512 Widened(const float* values) { return _mm512_loadu_ps(values); }

// Scores of kRows rows for kBlocks blocks; lanes nobody may see are computed and not used.
template <int kRows, int kBlocks, class T>
void Scores(const float* const* q, const T* const* keys, int64_t key_stride, int d_head,
            const std::type_identity_t<T>* const* wanted, const float* scale, float* scores) {
  __m512 sum[kRows][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) sum[r][b] = _mm512_setzero_ps();
  }
#pragma GCC unroll 4
  for (int d = 0; d < d_head; ++d) {
    __m512 k[kBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      k[b] = Widened(keys[b] + d * key_stride);
      if constexpr (kIsCode<T>) {
        // Once a line: a dimension of a block's keys is half of one, or a quarter.
        if (d % (kLine / (kBlockTokens * static_cast<int>(sizeof(T)))) == 0) {
          Prefetch(wanted[b] + d * kBlockTokens);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 query = _mm512_set1_ps(q[r][d]);
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) sum[r][b] = _mm512_fmadd_ps(query, k[b], sum[r][b]);
    }
  }
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    const __m512 scale16 = _mm512_loadu_ps(scale + b * kBlockTokens);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      _mm512_storeu_ps(scores + r * kScoreStride + b * kBlockTokens,
                       _mm512_mul_ps(sum[r][b], scale16));
    }
  }
}

// Scores of kRows rows, kScoreStride apart, to weights, each already times its value's scale;
// leaves their sums without it in `weight`. Hidden lanes get weight zero, which a sum of values
// cannot tell from nothing: it starts from +0 and no product is small enough to round to -0.
template <int kRows, bool kMasked>
void Weigh(const float* top, const float* v_scale, int block_begin, int block_end, const Seen& seen,
           float* scores, float* weight) {
  __m512 highest[kRows], sum[kRows];
  for (int r = 0; r < kRows; ++r) highest[r] = _mm512_set1_ps(top[r]), sum[r] = _mm512_setzero_ps();
  for (int b = block_begin; b < block_end; ++b) {
    const __mmask16 lanes = kMasked ? Visible(b, seen) : __mmask16{0xffff};
    const __m512 scale = _mm512_loadu_ps(v_scale + b * kBlockTokens);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      float* at = scores + r * kScoreStride + b * kBlockTokens;
      const __m512 part =
          ExpOfNonPositive(_mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, at), highest[r]));
      sum[r] = _mm512_mask_add_ps(sum[r], lanes, sum[r], part);
      _mm512_storeu_ps(at, _mm512_maskz_mul_ps(lanes, part, scale));
    }
  }
  for (int r = 0; r < kRows; ++r) weight[r] = Join16(sum[r]);
}

// Adds the values of positions [begin, end), counted from values[0]'s first, to what `value` holds:
// kRows rows, kVectors * 16 dimensions.
template <int kRows, int kVectors, class T>
void Values(const T* const* values, int64_t value_stride,
            const std::type_identity_t<T>* const* wanted, int begin, int end, const float* weights,
            int padded, float* value) {
  // Widened values lie one after the other, codes block by block.
  constexpr int kStep = kIsCode<T> ? kBlockTokens : kBuffered * kBlockTokens;
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sum[r][i] = _mm512_loadu_ps(value + r * padded + i * 16);
  }
  for (int first = begin; first < end;) {
    const int block = first / kStep, last = (block + 1) * kStep < end ? (block + 1) * kStep : end;
    const int64_t skipped = (first - block * kStep) * value_stride;
    const T* row = values[block] + skipped;
    const T* next = kIsCode<T> ? wanted[block] + (first - block * kStep) * kVectors * 16 : nullptr;
#pragma GCC unroll 2
    for (int j = first; j < last; ++j) {
      __m512 v[kVectors];
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        v[i] = Widened(row + i * 16);
        // In whole lines, as many as are read: each call's share of a block.
        if constexpr (kIsCode<T>) {
          if (i % (kLine / (16 * static_cast<int>(sizeof(T)))) == 0) Prefetch(next + i * 16);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 weight = _mm512_set1_ps(weights[r * kScoreStride + j]);
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) sum[r][i] = _mm512_fmadd_ps(weight, v[i], sum[r][i]);
      }
      row += value_stride;
      if constexpr (kIsCode<T>) next += kVectors * 16;
    }
    first = last;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) _mm512_storeu_ps(value + r * padded + i * 16, sum[r][i]);
  }
}
