// SPDX-License-Identifier: Apache-2.0
// What the files with AVX2 products share: tokens, prefetches, exact sums of a block, and the walk
// over panels and tokens. Included after panels.h, inside an unnamed namespace.

#include "cpu/level.inl"

constexpr int kAhead = 2048;  // bytes of weights asked for ahead of use

inline int32_t Load32(const int8_t* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

inline __m256i Load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }

// Always inline, like whatever does nothing but call it: g++ 12 takes such a function for one
// without effect and drops its calls.
template <int kBytes>
[[gnu::always_inline]] inline void Fetch(const uint8_t* at) {
#pragma GCC unroll 12
  for (int i = 0; i < kBytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + kAhead + i), _MM_HINT_T0);
  }
}

struct Token {
  Token(const Activations& x, int t)
      : hi(x.hi + int64_t{t} * x.stride),
        lo(x.lo + int64_t{t} * x.stride),
        sum_hi(x.sum_hi + int64_t{t} * x.num_blocks),
        sum_lo(x.sum_lo + int64_t{t} * x.num_blocks),
        scale(x.scale + int64_t{t} * x.num_strips) {}
  const int8_t *hi, *lo;
  const int32_t *sum_hi, *sum_lo;
  const float* scale;
};

inline int32_t BlockSum(const Token& x, int block) {
  return 256 * x.sum_hi[block] + x.sum_lo[block];
}

// A token's block as products take it. With VNNI: both halves where they lie. Without: columns
// 4c .. 4c + 3 as 16-bit values in the order 0 2 1 3, what meets the even bytes of a lane of codes,
// then what meets the odd ones.
struct BlockValues {
  const int8_t *hi, *lo;
  int32_t pairs[16];
};
inline void ReadBlock(const Token& x, int block, BlockValues& values) {
  values.hi = x.hi + block * kQuantBlock;
  values.lo = x.lo + block * kQuantBlock;
  if constexpr (kVnni) return;
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  for (int i = 0; i < 2; ++i) {
    const auto* hi = reinterpret_cast<const __m128i*>(values.hi + i * 16);
    const auto* lo = reinterpret_cast<const __m128i*>(values.lo + i * 16);
    const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128(hi));
    const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(lo));
    const __m256i joined = _mm256_add_epi16(_mm256_slli_epi16(high, 8), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(values.pairs + i * 8),
                        _mm256_shuffle_epi8(joined, order));
  }
}

// The exact sums of a block, eight rows: of both halves with VNNI, else of whole values in `low`.
struct BlockExact {
  __m256i high, low;
};
// A line: four columns of eight rows as unsigned bytes.
inline void AddLine(__m256i codes, const BlockValues& x, int line, BlockExact& sum) {
  if constexpr (kVnni) {
    const __m256i hi = _mm256_set1_epi32(Load32(x.hi + 4 * line));
    const __m256i lo = _mm256_set1_epi32(Load32(x.lo + 4 * line));
    sum.high = _mm256_dpbusd_avx_epi32(sum.high, codes, hi);
    sum.low = _mm256_dpbusd_avx_epi32(sum.low, codes, lo);
  } else {
    const __m256i even = _mm256_and_si256(codes, _mm256_set1_epi16(255));
    const __m256i odd = _mm256_srli_epi16(codes, 8);
    const __m256i first = _mm256_madd_epi16(even, _mm256_set1_epi32(x.pairs[2 * line]));
    const __m256i second = _mm256_madd_epi16(odd, _mm256_set1_epi32(x.pairs[2 * line + 1]));
    sum.low = _mm256_add_epi32(sum.low, _mm256_add_epi32(first, second));
  }
}
inline __m256i Joined(const BlockExact& sum) {
  return kVnni ? _mm256_add_epi32(_mm256_slli_epi32(sum.high, 8), sum.low) : sum.low;
}

void AddBias(const MatmulArgs& args, int row_begin, int row_end) {
  if (args.bias == nullptr) return;
  for (int t = 0; t < args.x->m; ++t) {
    float* y = args.y + t * args.y_stride;
    for (int r = row_begin; r < row_end; r += 8) {
      _mm256_storeu_ps(y + r,
                       _mm256_add_ps(_mm256_loadu_ps(y + r), _mm256_loadu_ps(args.bias + r)));
    }
  }
}

using PanelFunction = void (*)(const MatmulArgs&, int, const uint8_t*, float*);
constexpr int kMostTokens = 4;

// A panel once from memory, then all tokens while it is in cache.
void ForPanels(const MatmulArgs& args, int panel_begin, int panel_end,
               const PanelFunction (&functions)[kMostTokens]) {
  for (int p = panel_begin; p < panel_end; ++p) {
    const uint8_t* panel = args.w->data + p * args.w->panel_bytes;
    for (int t = 0; t < args.x->m; t += kMostTokens) {
      const int tokens = args.x->m - t < kMostTokens ? args.x->m - t : kMostTokens;
      functions[tokens - 1](args, t, panel, args.y + p * kPanelRows);
    }
  }
}
