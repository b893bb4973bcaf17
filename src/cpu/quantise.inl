// SPDX-License-Identifier: Apache-2.0
// Floats to activations, for vectors of any width: the file that includes this inside its unnamed
// namespace, after canon.inl, brings LargestMagnitude, SplitStrip, RoundStrip and BlockSums.

int16_t SumOf16(const int8_t* at) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  // Unsigned bytes add up fast: 128 more each, 2048 too many in all.
  const __m128i sums = _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
  return static_cast<int16_t>(_mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 2048);
}

// The sums of one plane of a row. `first` counts blocks.
void SumSupers(const int8_t* plane, int64_t first, int num_blocks, const int32_t* sums,
               int16_t* sum16, int16_t* sum32) {
  for (int i = 0; i < 2 * num_blocks; ++i) sum16[2 * first + i] = SumOf16(plane + 16 * i);
  for (int64_t b = first; b < first + num_blocks; ++b) sum32[b] = static_cast<int16_t>(sums[b]);
}
void SuperSums(const Activations& x, int row) {
  const int64_t at = int64_t{row} * x.stride, first = int64_t{row} * x.num_blocks;
  if (x.planes == 2) {
    SumSupers(x.hi + at, first, x.num_blocks, x.sum_hi, x.sum16_hi, x.sum32_hi);
  }
  SumSupers(x.lo + at, first, x.num_blocks, x.sum_lo, x.sum16_lo, x.sum32_lo);
}

// Scales of all strips of a row, for values up to `most`: round(values, count, inverse, column)
// does the rest of a strip, or clear(begin, end) where it holds what is no number.
template <class Round, class Clear>
inline void EachStrip(const float* values, const Activations& x, int row, float most, Round&& round,
                      Clear&& clear) {
  for (int c = 0; c < x.num_strips; ++c) {
    const int begin = c * x.strip, end = begin + x.strip < x.cols ? begin + x.strip : x.cols;
    const uint32_t top = LargestMagnitude(values + begin, end - begin);
    const bool finite = top < 0x7f800000u;
    const float amax = FloatOf(top);
    const float inverse = finite && amax >= 0x1p-100f ? most / amax : 0.0f;
    x.scale[int64_t{row} * x.num_strips + c] = finite ? amax / most : FloatOf(0x7fc00000u);
    if (finite) {
      round(values + begin, end - begin, inverse, begin);
    } else {
      clear(begin, end);
    }
  }
}

// One plane.
void QuantiseBytes(const float* values, const Activations& x, int row) {
  int8_t* plane = x.lo + int64_t{row} * x.stride;
  EachStrip(
      values, x, row, kByteMax,
      [&](const float* from, int count, float inverse, int column) {
        RoundStrip(from, count, inverse, plane + column);
      },
      [&](int begin, int end) {
        for (int i = begin; i < end; ++i) plane[i] = 0;
      });
  for (int i = x.cols; i < x.stride; ++i) plane[i] = 0;
  BlockSums(plane, x.num_blocks, x.sum_lo + int64_t{row} * x.num_blocks);
  if (x.strip == kSuper) SuperSums(x, row);
}

void Quantise(const float* values, const Activations& x, int row) {
  if (x.planes == 1) return QuantiseBytes(values, x, row);
  int8_t* hi = x.hi + int64_t{row} * x.stride;
  int8_t* lo = x.lo + int64_t{row} * x.stride;
  EachStrip(
      values, x, row, kActMax,
      [&](const float* from, int count, float inverse, int column) {
        SplitStrip(from, count, inverse, hi + column, lo + column);
      },
      [&](int begin, int end) {
        for (int i = begin; i < end; ++i) hi[i] = lo[i] = 0;
      });
  for (int i = x.cols; i < x.stride; ++i) hi[i] = lo[i] = 0;
  BlockSums(hi, x.num_blocks, x.sum_hi + int64_t{row} * x.num_blocks);
  BlockSums(lo, x.num_blocks, x.sum_lo + int64_t{row} * x.num_blocks);
  if (x.strip == kSuper) return SuperSums(x, row);
  int16_t* whole = x.whole + int64_t{row} * x.stride;
  for (int i = 0; i < x.stride; ++i) whole[i] = static_cast<int16_t>(256 * hi[i] + lo[i]);
}
