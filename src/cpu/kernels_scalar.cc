// SPDX-License-Identifier: Apache-2.0
// The definition of every kernel: short, slow, obviously right. docs/numerics.md gives the reasons.
#include <cstdint>

#include "base/num.h"
#include "cpu/kernels.h"
#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

void SuperSums(const Activations& x, int row) {
  const int64_t first = int64_t{row} * x.num_blocks;
  const auto sum = [&](const int8_t* plane, const int32_t* sums, int16_t* sum16, int16_t* sum32) {
    for (int i = 0; i < 2 * x.num_blocks; ++i) {
      int32_t exact = 0;
      for (int64_t j = int64_t{row} * x.stride + 16 * i, end = j + 16; j < end; ++j) {
        exact += plane[j];
      }
      sum16[2 * first + i] = static_cast<int16_t>(exact);
    }
    for (int64_t b = first; b < first + x.num_blocks; ++b) {
      sum32[b] = static_cast<int16_t>(sums[b]);
    }
  };
  if (x.planes == 2) sum(x.hi, x.sum_hi, x.sum16_hi, x.sum32_hi);
  sum(x.lo, x.sum_lo, x.sum16_lo, x.sum32_lo);
}

void SumBlocks(const int8_t* plane, int num_blocks, int32_t* sums) {
  for (int b = 0; b < num_blocks; ++b) {
    sums[b] = 0;
    for (int i = 0; i < kQuantBlock; ++i) sums[b] += plane[b * kQuantBlock + i];
  }
}

// Where a strip lies, and what its values are multiplied by before they are rounded.
struct StripOf {
  int begin, end;
  bool finite;
  float inverse;
};

// The scale of strip `c` of a row for values up to `most`. A strip that holds a NaN or an infinity
// gets a NaN scale, so that exactly its own row comes out NaN.
StripOf ScaleStrip(const float* values, const Activations& x, int row, int c, float most) {
  const int begin = c * x.strip, end = begin + x.strip < x.cols ? begin + x.strip : x.cols;
  uint32_t top = 0;  // magnitudes compare as integers, and NaN above all
  for (int i = begin; i < end; ++i) {
    const uint32_t magnitude = BitsOf(values[i]) & 0x7fffffffu;
    if (magnitude > top) top = magnitude;
  }
  const bool finite = top < 0x7f800000u;
  const float amax = FloatOf(top);
  x.scale[int64_t{row} * x.num_strips + c] = finite ? amax / most : FloatOf(0x7fc00000u);
  // Below 2^-100 the inverse would overflow; such a strip is zero to any reader of its sum.
  return {begin, end, finite, finite && amax >= 0x1p-100f ? most / amax : 0.0f};
}

// One plane: 8-bit values rounded to nearest even.
void QuantiseBytes(const float* values, const Activations& x, int row) {
  int8_t* plane = x.lo + int64_t{row} * x.stride;
  for (int c = 0; c < x.num_strips; ++c) {
    const StripOf strip = ScaleStrip(values, x, row, c, kByteMax);
    for (int i = strip.begin; i < strip.end; ++i) {
      const float scaled = strip.finite ? values[i] * strip.inverse : 0.0f;
      plane[i] = static_cast<int8_t>((scaled + kRound) - kRound);
    }
  }
  for (int i = x.cols; i < x.stride; ++i) plane[i] = 0;
  SumBlocks(plane, x.num_blocks, x.sum_lo + int64_t{row} * x.num_blocks);
  if (x.strip == kSuper) SuperSums(x, row);
}

// One scale per strip, 16-bit values rounded to nearest even; zeros where the scale is NaN.
void Quantise(const float* values, const Activations& x, int row) {
  if (x.planes == 1) return QuantiseBytes(values, x, row);
  int8_t* hi = x.hi + int64_t{row} * x.stride;
  int8_t* lo = x.lo + int64_t{row} * x.stride;
  for (int c = 0; c < x.num_strips; ++c) {
    const StripOf strip = ScaleStrip(values, x, row, c, kActMax);
    for (int i = strip.begin; i < strip.end; ++i) {
      const float scaled = strip.finite ? values[i] * strip.inverse : 0.0f;
      const auto value = static_cast<int32_t>((scaled + kRound) - kRound);
      const auto low = static_cast<int8_t>(value & 255);
      lo[i] = low;
      hi[i] = static_cast<int8_t>((value - low) / 256);
    }
  }
  for (int i = x.cols; i < x.stride; ++i) hi[i] = lo[i] = 0;
  SumBlocks(hi, x.num_blocks, x.sum_hi + int64_t{row} * x.num_blocks);
  SumBlocks(lo, x.num_blocks, x.sum_lo + int64_t{row} * x.num_blocks);
  if (x.strip == kSuper) return SuperSums(x, row);
  int16_t* whole = x.whole + int64_t{row} * x.stride;
  for (int i = 0; i < x.stride; ++i) whole[i] = static_cast<int16_t>(256 * hi[i] + lo[i]);
}

struct Token {
  const int8_t *hi, *lo;  // hi is null where there is one plane
  const float* scale;
  int strip;
  float ScaleAt(int block) const { return scale[block * kQuantBlock / strip]; }
};
Token TokenOf(const Activations& x, int t) {
  return {x.planes == 2 ? x.hi + int64_t{t} * x.stride : nullptr, x.lo + int64_t{t} * x.stride,
          x.scale + int64_t{t} * x.num_strips, x.strip};
}

int32_t Joined(const Token& token, int column) {
  return (token.hi != nullptr ? 256 * token.hi[column] : 0) + token.lo[column];
}

// Per strip of the activations an exact integer sum, one conversion, one fused multiply-add; then
// the spilled blocks of the row, in order; then the bias.
float DotMxfp4(const PackedMatrix& w, const uint8_t* panel, int lane, const Token& x) {
  const int blocks = w.cols / kQuantBlock, together = x.strip / kQuantBlock;
  float sum = 0.0f;
  for (int first = 0; first < blocks; first += together) {
    int32_t exact = 0;
    for (int b = first; b < blocks && b < first + together; ++b) {
      const int shift = Mxfp4Shifts(panel, w.cols)[b * kPanelRows + lane] >> 4;
      for (int i = 0; i < kQuantBlock; ++i) {
        const int code = Mxfp4Code(panel, w.cols, b, lane, i);
        exact += (kTwiceE2m1[code] << shift) * Joined(x, b * kQuantBlock + i);
      }
    }
    const uint8_t base = Mxfp4Bases(panel)[first / kStripBlocks * kPanelRows + lane];
    const float scale = FloatOf(uint32_t{base} << 23);
    sum = FusedMulAdd(static_cast<float>(exact), scale * x.ScaleAt(first), sum);
  }
  return sum;
}

void AddSpills(const MatmulArgs& args, int row_begin, int row_end) {
  const PackedMatrix& w = *args.w;
  for (int s = 0; s < w.num_spills; ++s) {
    const SpilledBlock& spill = w.spills[s];
    if (spill.row < row_begin || spill.row >= row_end) continue;
    for (int t = 0; t < args.x->m; ++t) {
      const Token x = TokenOf(*args.x, t);
      int32_t exact = 0;
      for (int i = 0; i < kQuantBlock; ++i) {
        exact += spill.w[i] * Joined(x, spill.block * kQuantBlock + i);
      }
      float& y = args.y[t * args.y_stride + spill.row];
      const float scale = spill.scale * x.ScaleAt(spill.block);
      y = FusedMulAdd(static_cast<float>(exact), scale, y);
    }
  }
}

void AddBias(const MatmulArgs& args, int row_begin, int row_end) {
  if (args.bias == nullptr) return;
  for (int t = 0; t < args.x->m; ++t) {
    for (int r = row_begin; r < row_end; ++r) args.y[t * args.y_stride + r] += args.bias[r];
  }
}

using PanelDot = float (*)(const PackedMatrix& w, const uint8_t* panel, int lane, const Token& x);

void EachProduct(const MatmulArgs& args, int panel_begin, int panel_end, PanelDot dot) {
  const PackedMatrix& w = *args.w;
  for (int p = panel_begin; p < panel_end; ++p) {
    const uint8_t* panel = w.data + p * w.panel_bytes;
    for (int t = 0; t < args.x->m; ++t) {
      const Token x = TokenOf(*args.x, t);
      for (int lane = 0; lane < kPanelRows; ++lane) {
        args.y[t * args.y_stride + p * kPanelRows + lane] = dot(w, panel, lane, x);
      }
    }
  }
}

void MatmulMxfp4(const MatmulArgs& args, int panel_begin, int panel_end) {
  EachProduct(args, panel_begin, panel_end, DotMxfp4);
  AddSpills(args, panel_begin * kPanelRows, panel_end * kPanelRows);
  AddBias(args, panel_begin * kPanelRows, panel_end * kPanelRows);
}

// Per block of 32 an exact integer sum, then one fused multiply-add with both scales.
float DotQ8(const PackedMatrix& w, const uint8_t* panel, int lane, const Token& x) {
  float sum = 0.0f;
  for (int b = 0; b < w.cols / kQuantBlock; ++b) {
    int32_t exact = 0;
    for (int i = 0; i < kQuantBlock; ++i) {
      exact += Q8Code(panel, w.cols, b, lane, i) * Joined(x, b * kQuantBlock + i);
    }
    const float scale = F32FromF16(Q8Scales(panel)[b * kPanelRows + lane]);
    sum = FusedMulAdd(static_cast<float>(exact), scale * x.ScaleAt(b), sum);
  }
  return sum;
}

void MatmulQ8(const MatmulArgs& args, int panel_begin, int panel_end) {
  EachProduct(args, panel_begin, panel_end, DotQ8);
  AddBias(args, panel_begin * kPanelRows, panel_end * kPanelRows);
}

// Sixteen lanes, column i in lane i mod 16, each ascending; then the lanes are joined.
float Dot(const float* a, const float* b, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) lanes[i % 16] = FusedMulAdd(a[i], b[i], lanes[i % 16]);
  return JoinLanes(lanes);
}

void DotRows(const float* w, const float* x, int64_t x_stride, int cols, int m, float* y) {
  for (int t = 0; t < m; ++t) y[t] = Dot(w, x + t * x_stride, cols);
}

void RmsNorm(const float* x, const float* gain, float eps, int n, float* y) {
  const float mean = Dot(x, x, n) / static_cast<float>(n);
  const float scale = 1.0f / __builtin_sqrtf(mean + eps);
  for (int i = 0; i < n; ++i) y[i] = (x[i] * scale) * gain[i];
}

void Glu(const float* gate, const float* up, float alpha, float limit, int n, float* z) {
  for (int i = 0; i < n; ++i) {
    float g = gate[i], u = up[i];
    if (limit > 0.0f) {  // comparisons that let a NaN through
      if (g > limit) g = limit;
      if (u > limit) u = limit;
      if (u < -limit) u = -limit;
      z[i] = Silu(g, alpha) * (u + 1.0f);
    } else {
      z[i] = Silu(g, alpha) * u;
    }
  }
}

void Rope(float* head, const float* cos, const float* sin, int n_dims, bool neighbours) {
  const int pairs = n_dims / 2;
  for (int i = 0; i < pairs; ++i) {
    float& a = head[neighbours ? 2 * i : i];
    float& b = head[neighbours ? 2 * i + 1 : i + pairs];
    const float old_a = a, old_b = b;
    a = FusedMulAdd(old_a, cos[i], -(old_b * sin[i]));
    b = FusedMulAdd(old_b, cos[i], old_a * sin[i]);
  }
}

void AddScaled(const float* x, float factor, int n, float* y) {
  for (int i = 0; i < n; ++i) y[i] = FusedMulAdd(factor, x[i], y[i]);
}

bool Softmax(float* values, int n) {
  float top = values[0];
  for (int i = 0; i < n; ++i) {
    if (!(values[i] <= top)) top = values[i];
  }
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    values[i] = Exp(values[i] - top);
    sum += values[i];
  }
  for (int i = 0; i < n; ++i) values[i] /= sum;
  return sum == sum;
}

}  // namespace

const KernelTable& ScalarKernels() {
  static const KernelTable kTable = [] {
    KernelTable table = {"scalar", Quantise, DotRows,   nullptr, nullptr, RmsNorm,
                         Glu,      Rope,     AddScaled, Softmax, nullptr, {}};
    table.matmul[static_cast<int>(PackKind::kMxfp4)] = MatmulMxfp4;
    table.matmul[static_cast<int>(PackKind::kQ8)] = MatmulQ8;
    AddScalarAttend(table);
    AddScalarSupers(table);
    AddScalarBlocks(table);
    AddScalarFloats(table);
    // The definitions above are those of both numerics: they ask the activations.
    for (int i = 0; i < kNumPackKinds; ++i) {
      const auto kind = static_cast<PackKind>(i);
      const bool is_float =
          kind == PackKind::kF32 || kind == PackKind::kF16 || kind == PackKind::kBf16;
      if (!is_float) table.fast.matmul[i] = table.matmul[i];
    }
    return table;
  }();
  return kTable;
}

}  // namespace hearth
