// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic of the numerics contract, shared by every kernel file for its odd ends. Each
// kernel file includes it inside its own unnamed namespace, so that no copy compiled for a newer
// processor can be linked into code for an older one.

inline float FusedMulAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

inline uint32_t BitsOf(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float FloatOf(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Joins sixteen lanes, always in this tree: lane i with i + 8, then + 4, + 2, + 1.
inline float JoinLanes(const float* lanes) {
  float sum[16];
  for (int i = 0; i < 16; ++i) sum[i] = lanes[i];
  for (int half = 8; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

// e^x by 2^n * p(r): n = x / ln 2 rounded to nearest even, |r| <= ln 2 / 2, p of degree 6.
// Below -87 the answer is 0, above 88 it is that of 88; NaN stays NaN.
constexpr float kExpLow = -87.0f, kExpHigh = 88.0f;
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
constexpr float kExpC[7] = {
    1.0f, 1.0f, 0.5f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f, 1.3981999507e-3f};
// Adding and taking away 1.5 * 2^23 rounds a small float to the nearest integer, ties to even.
constexpr float kRound = 12582912.0f;

inline float Exp(float x) {
  if (x != x) return x;
  if (x < kExpLow) return 0.0f;
  if (x > kExpHigh) x = kExpHigh;
  const float n = FusedMulAdd(x, kLog2E, kRound) - kRound;
  float r = FusedMulAdd(n, -kLn2High, x);
  r = FusedMulAdd(n, -kLn2Low, r);
  float p = kExpC[6];
  for (int i = 5; i >= 0; --i) p = FusedMulAdd(p, r, kExpC[i]);
  return p * FloatOf(static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23);
}

inline float Silu(float x, float alpha) { return x / (1.0f + Exp(-(alpha * x))); }
