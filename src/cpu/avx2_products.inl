// SPDX-License-Identifier: Apache-2.0
// What the files with AVX2 products share: tokens, prefetches, activations of 16 bits, and the walk
// over panels and tokens. Included after panels.h, inside an unnamed namespace.

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

// Columns 4c .. 4c + 3 as 16-bit values in the order 0 2 1 3: what meets the even bytes of a lane
// of codes, then what meets the odd ones.
inline void JoinBlock(const Token& x, int block, int32_t (&pairs)[16]) {
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  for (int i = 0; i < 2; ++i) {
    const int at = block * kQuantBlock + i * 16;
    const __m256i high =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x.hi + at)));
    const __m256i low =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x.lo + at)));
    const __m256i joined = _mm256_add_epi16(_mm256_slli_epi16(high, 8), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(pairs + i * 8),
                        _mm256_shuffle_epi8(joined, order));
  }
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
