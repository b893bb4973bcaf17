// SPDX-License-Identifier: Apache-2.0
// Products with K-quants and IQ4_XS on AVX2, and again with VNNI: a panel is two vectors of eight
// rows. Without VNNI, unsigned codes times signed halves of activations add up in 16 bits as long
// as they fit, then widen.
#include <immintrin.h>

#include <cstdint>

#include "cpu/kernels_parts.h"
#include "cpu/panels.h"
#include "cpu/panels_super.h"

namespace hearth {
namespace {

#include "cpu/level.inl"

using Vec = __m256i;
inline Vec LoadLine(const uint8_t* at) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
}
inline Vec Masked(Vec x, int mask) {
  return _mm256_and_si256(x, _mm256_set1_epi8(static_cast<char>(mask)));
}
inline Vec Select(Vec x, int mask, Vec rest) { return _mm256_or_si256(Masked(x, mask), rest); }
template <int kLeft>
inline Vec Shifted(Vec x) {
  if constexpr (kLeft > 0) return _mm256_slli_epi16(x, kLeft);
  if constexpr (kLeft < 0) return _mm256_srli_epi16(x, -kLeft);
  return x;
}
struct alignas(16) Iq4Table {
  uint8_t at[16];
};
constexpr Iq4Table MakeIq4Table() {
  Iq4Table table{};
  for (int i = 0; i < 16; ++i) table.at[i] = static_cast<uint8_t>(kIq4Codes[i] + 128);
  return table;
}
constexpr Iq4Table kIq4Table = MakeIq4Table();
inline Vec LookUpIq4(Vec codes) {
  const __m128i table = _mm_load_si128(reinterpret_cast<const __m128i*>(kIq4Table.at));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), Masked(codes, 15));
}

#include "cpu/super_codes.inl"

inline Vec Broadcast32(const void* at) {
  int32_t value;
  __builtin_memcpy(&value, at, sizeof value);
  return _mm256_set1_epi32(value);
}

// Quads whose sums fit 16 bits together: 2 * largest code * 128 each, at most 32767 in all.
template <PackKind kKind>
constexpr int kRun = kKind == PackKind::kQ4K   ? 8
                     : kKind == PackKind::kQ6K ? 2
                                               : 4;

// Quads [first, first + kQuads) times one half of the activations.
template <PackKind kKind, int kQuads>
[[gnu::always_inline]] inline Vec Dots(const Vec (&w)[16], int first, const int8_t* x, Vec sum) {
  const Vec ones = _mm256_set1_epi16(1);
  if constexpr (kVnni) {
#pragma GCC unroll 8
    for (int q = first; q < first + kQuads; ++q) {
      sum = _mm256_dpbusd_avx_epi32(sum, w[q], Broadcast32(x + 4 * q));
    }
  } else if constexpr (kKind == PackKind::kIq4Xs) {
    // Codes up to 241 are too large for one product of 16 bits: they go in two halves.
#pragma GCC unroll 8
    for (int q = first; q < first + kQuads; ++q) {
      const Vec values = Broadcast32(x + 4 * q), half = Masked(_mm256_srli_epi16(w[q], 1), 127);
      const Vec a = _mm256_maddubs_epi16(half, values);
      const Vec b = _mm256_maddubs_epi16(_mm256_sub_epi8(w[q], half), values);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, ones));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(b, ones));
    }
  } else {
#pragma GCC unroll 8
    for (int q = first; q < first + kQuads; q += kRun<kKind>) {
      Vec narrow = _mm256_maddubs_epi16(w[q], Broadcast32(x + 4 * q));
#pragma GCC unroll 8
      for (int i = q + 1; i < q + kRun<kKind>; ++i) {
        narrow = _mm256_add_epi16(narrow, _mm256_maddubs_epi16(w[i], Broadcast32(x + 4 * i)));
      }
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, ones));
    }
  }
  return sum;
}

// Scales and minima of one group, eight rows.
template <PackKind kKind>
struct GroupScales {
  Vec scale[kSubs<kKind>], min_pair[kSubs<kKind> / 2];
};

template <PackKind kKind>
[[gnu::always_inline]] inline GroupScales<kKind> ScalesOf(const uint8_t* unit, int half,
                                                          int group) {
  GroupScales<kKind> out;
  const uint8_t* scales = unit + SuperLayoutOf(kKind).scales_at;
  if constexpr (kKind == PackKind::kQ4K || kKind == PackKind::kQ5K) {
    scales += half * 32;
    Vec six;
    if (group < 3) {
      six = LoadLine(scales + group * 64);
    } else {
      const Vec a = _mm256_srli_epi32(LoadLine(scales), 24);
      const Vec b = _mm256_srli_epi32(LoadLine(scales + 64), 24);
      const Vec c = _mm256_srli_epi32(LoadLine(scales + 128), 24);
      six = _mm256_or_si256(a, _mm256_or_si256(_mm256_slli_epi32(b, 8), _mm256_slli_epi32(c, 16)));
    }
    const Vec mask = _mm256_set1_epi32(63);
    out.scale[0] = _mm256_and_si256(six, mask);
    out.scale[1] = _mm256_and_si256(_mm256_srli_epi32(six, 6), mask);
    const Vec first = _mm256_and_si256(_mm256_srli_epi32(six, 12), mask);
    const Vec second = _mm256_and_si256(_mm256_srli_epi32(six, 18), mask);
    out.min_pair[0] = _mm256_or_si256(first, _mm256_slli_epi32(second, 16));
  } else {
#pragma GCC unroll 4
    for (int s = 0; s < kSubs<kKind>; ++s) {
      const uint8_t* at = scales + (group * kSubs<kKind> + s) * kPanelRows + half * 8;
      const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
      out.scale[s] = _mm256_cvtepi8_epi32(eight);
    }
    if constexpr (kKind == PackKind::kQ2K) {
      const Vec nibble = _mm256_set1_epi32(15);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const Vec first = _mm256_and_si256(_mm256_srli_epi32(out.scale[2 * i], 4), nibble);
        const Vec second = _mm256_and_si256(_mm256_srli_epi32(out.scale[2 * i + 1], 4), nibble);
        out.min_pair[i] = _mm256_or_si256(first, _mm256_slli_epi32(second, 16));
        out.scale[2 * i] = _mm256_and_si256(out.scale[2 * i], nibble);
        out.scale[2 * i + 1] = _mm256_and_si256(out.scale[2 * i + 1], nibble);
      }
    }
  }
  return out;
}

// Where one token's activations and sums of a superblock lie: of two planes hi comes first, lo is
// last.
template <PackKind kKind, int kPlanes>
struct Token {
  Token(const Activations& x, int64_t t, int unit) {
    constexpr bool kSixteen = SuperLayoutOf(kKind).sub_cols == 16;
    const int64_t at = kSixteen ? t * x.num_blocks * 2 + unit * 16 : t * x.num_blocks + unit * 8;
    plane[kPlanes - 1] = x.lo + t * x.stride + unit * kSuper;
    sums[kPlanes - 1] = (kSixteen ? x.sum16_lo : x.sum32_lo) + at;
    if constexpr (kPlanes == 2) {
      plane[0] = x.hi + t * x.stride + unit * kSuper;
      sums[0] = (kSixteen ? x.sum16_hi : x.sum32_hi) + at;
    }
    scale = x.scale[t * x.num_strips + unit];
  }
  const int8_t* plane[kPlanes];
  const int16_t* sums[kPlanes];  // of the superblock's sub-blocks
  float scale;
};

// The exact sums of a superblock, by plane.
template <int kPlanes>
struct Exact {
  Vec sum[kPlanes], min[kPlanes];
};

template <PackKind kKind, int kPlanes>
[[gnu::always_inline]] inline void AddGroup(const Vec (&w)[16], const GroupScales<kKind>& scales,
                                            const Token<kKind, kPlanes>& x, int group,
                                            Exact<kPlanes>& exact) {
  constexpr int kQuads = kSteps<kKind>;
#pragma GCC unroll 4
  for (int s = 0; s < kSubs<kKind>; ++s) {
    const int sub = group * kSubs<kKind> + s;
#pragma GCC unroll 2
    for (int i = 0; i < kPlanes; ++i) {
      const Vec from = _mm256_set1_epi32(-kCodeOffset<kKind> * x.sums[i][sub]);
      const Vec sum = Dots<kKind, kQuads>(w, s * kQuads, x.plane[i] + group * 64, from);
      exact.sum[i] = _mm256_add_epi32(exact.sum[i], _mm256_mullo_epi32(sum, scales.scale[s]));
    }
  }
  if constexpr (SuperLayoutOf(kKind).has_min) {
#pragma GCC unroll 2
    for (int pair = 0; pair < kSubs<kKind> / 2; ++pair) {
      const int sub = group * kSubs<kKind> + 2 * pair;
#pragma GCC unroll 2
      for (int i = 0; i < kPlanes; ++i) {
        const Vec two = _mm256_madd_epi16(scales.min_pair[pair], Broadcast32(x.sums[i] + sub));
        exact.min[i] = _mm256_add_epi32(exact.min[i], two);
      }
    }
  }
}

inline __m256 Factors(const uint8_t* unit, int which, int half) {  // 0: d, 1: dmin
  const auto* at = reinterpret_cast<const __m128i*>(unit + which * 32 + half * 16);
  return _mm256_cvtph_ps(_mm_load_si128(at));
}

template <PackKind kKind, int kPlanes>
inline __m256 AddExact(const uint8_t* unit, int half, float x_scale, const Exact<kPlanes>& exact,
                       __m256 sum) {
  const __m256 by = _mm256_set1_ps(x_scale);
  const __m256 scale = _mm256_mul_ps(Factors(unit, 0, half), by);
  if constexpr (kPlanes == 2) {
    const __m256 high = _mm256_mul_ps(_mm256_set1_ps(256.0f), scale);
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact.sum[0]), high, sum);
  }
  sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(exact.sum[kPlanes - 1]), scale, sum);
  if constexpr (SuperLayoutOf(kKind).has_min) {
    Vec min = exact.min[kPlanes - 1];
    if constexpr (kPlanes == 2) min = _mm256_add_epi32(_mm256_slli_epi32(exact.min[0], 8), min);
    const __m256 min_scale = _mm256_mul_ps(Factors(unit, 1, half), by);
    sum = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(min), min_scale, sum);
  }
  return sum;
}

// One panel, kTokens tokens, eight rows at a time.
template <PackKind kKind, int kPlanes, int kTokens>
void Panel(const MatmulArgs& args, int token, const uint8_t* panel, float* y) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  const int units = args.w->cols / kSuper;
  __m256 sum[2][kTokens];
  for (auto& half : sum) {
    for (__m256& value : half) value = _mm256_setzero_ps();
  }
  for (int n = 0; n < units; ++n) {
    const uint8_t* unit = panel + int64_t{n} * kLayout.unit_bytes;
    for (int half = 0; half < 2; ++half) {
      Exact<kPlanes> exact[kTokens];
      for (Exact<kPlanes>& one : exact) one = {};
#pragma GCC unroll 1
      for (int g = 0; g < 4; ++g) {
        Vec w[16];
        UnpackGroup<kKind>(unit + kLayout.codes_at + g * kLayout.group_bytes + half * 32, w);
        const GroupScales<kKind> scales = ScalesOf<kKind>(unit, half, g);
#pragma GCC unroll 4
        for (int t = 0; t < kTokens; ++t) {
          const Token<kKind, kPlanes> x(*args.x, token + t, n);
          AddGroup<kKind, kPlanes>(w, scales, x, g, exact[t]);
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < kTokens; ++t) {
        const float x_scale = args.x->scale[int64_t{token + t} * args.x->num_strips + n];
        sum[half][t] = AddExact<kKind, kPlanes>(unit, half, x_scale, exact[t], sum[half][t]);
      }
    }
  }
  for (int t = 0; t < kTokens; ++t) {
    for (int half = 0; half < 2; ++half) {
      _mm256_storeu_ps(y + (token + t) * args.y_stride + half * 8, sum[half][t]);
    }
  }
}

// ---- One token ----------------------------------------------------------------------------------

// Asks memory for what lies 2 KB on: a panel's units follow each other.
template <int kBytes>
[[gnu::always_inline]] inline void Fetch(const uint8_t* at) {
#pragma GCC unroll 12
  for (int i = 0; i < kBytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + 2048 + i), _MM_HINT_T0);
  }
}

// Halves of the rows that share what is broadcast: as many as registers hold the sums of.
template <PackKind kKind>
constexpr int kHalves = kSubs<kKind> == 2 ? 2 : 1;

// Sums of one group, by plane, sub-block and half: of 16 bits while they fit, then times the scale.
template <PackKind kKind, int kPlanes>
using Narrow = Vec[kPlanes][kSubs<kKind>][kHalves<kKind>];

// Step kStep and those after it: quad kStep of every sub-block times all planes of the activations,
// which lie at `planes`.
template <PackKind kKind, int kPlanes, int kStep = 0>
[[gnu::always_inline]] inline void AddSteps(const uint8_t* codes,
                                            const int8_t* const (&planes)[kPlanes],
                                            const Vec (&scales)[kSubs<kKind>][kHalves<kKind>],
                                            Narrow<kKind, kPlanes>& narrow,
                                            Vec (&sums)[kPlanes][2]) {
  if constexpr (kStep < kSteps<kKind>) {
    constexpr bool kFirst = kStep % kRun<kKind> == 0;
    constexpr bool kLast = (kStep + 1) % kRun<kKind> == 0;
    Vec w[kHalves<kKind>][kSubs<kKind>];
#pragma GCC unroll 2
    for (int h = 0; h < kHalves<kKind>; ++h) UnpackStep<kKind, kStep, false>(codes + h * 32, w[h]);
#pragma GCC unroll 4
    for (int s = 0; s < kSubs<kKind>; ++s) {
      const int at = (s * kSteps<kKind> + kStep) * 4;
#pragma GCC unroll 2
      for (int i = 0; i < kPlanes; ++i) {
        const Vec values = Broadcast32(planes[i] + at);
#pragma GCC unroll 2
        for (int h = 0; h < kHalves<kKind>; ++h) {
          const Vec products = _mm256_maddubs_epi16(w[h][s], values);
          Vec& to = narrow[i][s][h];
          to = kFirst ? products : _mm256_add_epi16(to, products);
          if constexpr (kLast) {
            sums[i][h] = _mm256_add_epi32(sums[i][h], _mm256_madd_epi16(to, scales[s][h]));
          }
        }
      }
    }
    AddSteps<kKind, kPlanes, kStep + 1>(codes, planes, scales, narrow, sums);
  }
}

// Two values of 16 bits in each lane.
inline Vec PairOf(Vec first, Vec second) {
  return _mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa);
}

// One group. What minima take away, or scales of codes with an offset, goes to `minima`.
template <PackKind kKind, int kPlanes>
[[gnu::always_inline]] inline void AddGroupOfOne(const uint8_t* unit, int half, int g,
                                                 const Token<kKind, kPlanes>& x,
                                                 Vec (&sums)[kPlanes][2],
                                                 Vec (&minima)[kPlanes][2]) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  Vec pairs[kSubs<kKind>][kHalves<kKind>];
#pragma GCC unroll 2
  for (int h = 0; h < kHalves<kKind>; ++h) {
    const GroupScales<kKind> scales = ScalesOf<kKind>(unit, half + h, g);
#pragma GCC unroll 4
    for (int s = 0; s < kSubs<kKind>; ++s) {
      pairs[s][h] = PairOf(scales.scale[s], scales.scale[s]);
    }
    if constexpr (kLayout.has_min || kLayout.offset != 0) {
#pragma GCC unroll 2
      for (int two = 0; two < kSubs<kKind> / 2; ++two) {
        const int sub = g * kSubs<kKind> + 2 * two;
        const Vec pair = kLayout.has_min ? scales.min_pair[two]
                                         : PairOf(scales.scale[2 * two], scales.scale[2 * two + 1]);
#pragma GCC unroll 2
        for (int i = 0; i < kPlanes; ++i) {
          const Vec both = _mm256_madd_epi16(pair, Broadcast32(x.sums[i] + sub));
          minima[i][h] = _mm256_add_epi32(minima[i][h], both);
        }
      }
    }
  }
  Narrow<kKind, kPlanes> narrow;
  const int8_t* planes[kPlanes];
#pragma GCC unroll 2
  for (int i = 0; i < kPlanes; ++i) planes[i] = x.plane[i] + g * 64;
  AddSteps<kKind, kPlanes>(unit + kLayout.codes_at + g * kLayout.group_bytes + half * 32, planes,
                           pairs, narrow, sums);
}

// One panel and one token.
template <PackKind kKind, int kPlanes>
void PanelOfOne(const MatmulArgs& args, int token, const uint8_t* panel, float* y) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  const int units = args.w->cols / kSuper;
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int n = 0; n < units; ++n) {
    const uint8_t* unit = panel + int64_t{n} * kLayout.unit_bytes;
    const Token<kKind, kPlanes> x(*args.x, token, n);
    Fetch<kLayout.codes_at>(unit);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half += kHalves<kKind>) {
      Vec sums[kPlanes][2] = {}, minima[kPlanes][2] = {};
#pragma GCC unroll 1
      for (int g = 0; g < 4; ++g) {
        if (half == 0)
          Fetch<kLayout.group_bytes>(unit + kLayout.codes_at + g * kLayout.group_bytes);
        AddGroupOfOne<kKind, kPlanes>(unit, half, g, x, sums, minima);
      }
#pragma GCC unroll 2
      for (int h = 0; h < kHalves<kKind>; ++h) {
        Exact<kPlanes> exact;
#pragma GCC unroll 2
        for (int i = 0; i < kPlanes; ++i) {
          exact.sum[i] = sums[i][h];
          exact.min[i] = minima[i][h];
          if constexpr (kLayout.offset != 0) {
            const Vec offset = _mm256_set1_epi32(kLayout.offset);
            exact.sum[i] = _mm256_sub_epi32(exact.sum[i], _mm256_mullo_epi32(exact.min[i], offset));
          }
        }
        sum[half + h] = AddExact<kKind, kPlanes>(unit, half + h, x.scale, exact, sum[half + h]);
      }
    }
  }
  for (int half = 0; half < 2; ++half) {
    _mm256_storeu_ps(y + token * args.y_stride + half * 8, sum[half]);
  }
}

// A panel once from memory, then all tokens while it is in cache.
template <PackKind kKind, int kPlanes>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  using PanelFunction = void (*)(const MatmulArgs&, int, const uint8_t*, float*);
  constexpr int kMostTokens = 4;
  static constexpr PanelFunction kFunctions[kMostTokens] = {
      kVnni || kKind == PackKind::kIq4Xs ? Panel<kKind, kPlanes, 1> : PanelOfOne<kKind, kPlanes>,
      Panel<kKind, kPlanes, 2>, Panel<kKind, kPlanes, 3>, Panel<kKind, kPlanes, 4>};
  const int m = args.x->m;
  for (int p = panel_begin; p < panel_end; ++p) {
    float* y = args.y + p * kPanelRows;
    for (int t = 0; t < m; t += kMostTokens) {
      const int tokens = m - t < kMostTokens ? m - t : kMostTokens;
      kFunctions[tokens - 1](args, t, args.w->data + p * args.w->panel_bytes, y);
    }
    if (args.bias == nullptr) continue;
    for (int i = 0; i < m * kPanelRows; i += 8) {
      float* at = y + i / kPanelRows * args.y_stride + i % kPanelRows;
      const float* bias = args.bias + p * kPanelRows + i % kPanelRows;
      _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), _mm256_loadu_ps(bias)));
    }
  }
}

}  // namespace

template <>
void AddAvx2Supers<kVnni>(KernelTable& table) noexcept {
  SuperKinds::ForEach([&]<PackKind kKind>() {
    table.matmul[static_cast<int>(kKind)] = Matmul<kKind, 2>;
    table.fast.matmul[static_cast<int>(kKind)] = Matmul<kKind, 1>;
  });
}

}  // namespace hearth
