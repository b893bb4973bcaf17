// SPDX-License-Identifier: Apache-2.0
// Floats to activations, for vectors of any width: the file that includes this inside its unnamed
// namespace, after canon.inl, brings LargestMagnitude, SplitStrip and BlockSums.

int16_t SumOf16(const int8_t* at) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  // Unsigned bytes add up fast: 128 more each, 2048 too many in all.
  const __m128i sums = _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
  return static_cast<int16_t>(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 2048);
}

void SuperSums(const Activations& x, int row) {
  const int8_t* hi = x.hi + int64_t{row} * x.stride;
  const int8_t* lo = x.lo + int64_t{row} * x.stride;
  const int64_t first = int64_t{row} * x.num_blocks;
  for (int i = 0; i < 2 * x.num_blocks; ++i) {
    x.sum16_hi[2 * first + i] = SumOf16(hi + 16 * i);
    x.sum16_lo[2 * first + i] = SumOf16(lo + 16 * i);
  }
  for (int64_t b = first; b < first + x.num_blocks; ++b) {
    x.sum32_hi[b] = static_cast<int16_t>(x.sum_hi[b]);
    x.sum32_lo[b] = static_cast<int16_t>(x.sum_lo[b]);
  }
}

void Quantise(const float* values, const Activations& x, int row) {
  int8_t* hi = x.hi + int64_t{row} * x.stride;
  int8_t* lo = x.lo + int64_t{row} * x.stride;
  for (int c = 0; c < x.num_strips; ++c) {
    const int begin = c * x.strip, end = begin + x.strip < x.cols ? begin + x.strip : x.cols;
    const uint32_t top = LargestMagnitude(values + begin, end - begin);
    const bool finite = top < 0x7f800000u;
    const float amax = FloatOf(top);
    const float inverse = finite && amax >= 0x1p-100f ? kActMax / amax : 0.0f;
    x.scale[int64_t{row} * x.num_strips + c] = finite ? amax / kActMax : FloatOf(0x7fc00000u);
    if (finite) {
      SplitStrip(values + begin, end - begin, inverse, hi + begin, lo + begin);
    } else {
      for (int i = begin; i < end; ++i) hi[i] = lo[i] = 0;
    }
  }
  for (int i = x.cols; i < x.stride; ++i) hi[i] = lo[i] = 0;
  BlockSums(hi, x.num_blocks, x.sum_hi + int64_t{row} * x.num_blocks);
  BlockSums(lo, x.num_blocks, x.sum_lo + int64_t{row} * x.num_blocks);
  if (x.strip == kSuper) SuperSums(x, row);
}
