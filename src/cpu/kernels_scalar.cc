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
  for (int i = 0; i < 2 * x.num_blocks; ++i) {
    int32_t sum_hi = 0, sum_lo = 0;
    for (int64_t j = int64_t{row} * x.stride + 16 * i, end = j + 16; j < end; ++j) {
      sum_hi += x.hi[j];
      sum_lo += x.lo[j];
    }
    x.sum16_hi[2 * first + i] = static_cast<int16_t>(sum_hi);
    x.sum16_lo[2 * first + i] = static_cast<int16_t>(sum_lo);
  }
  for (int64_t b = first; b < first + x.num_blocks; ++b) {
    x.sum32_hi[b] = static_cast<int16_t>(x.sum_hi[b]);
    x.sum32_lo[b] = static_cast<int16_t>(x.sum_lo[b]);
  }
}

// One scale per strip, 16-bit values rounded to nearest even. A strip that holds a NaN or an
// infinity gets a NaN scale and zero values, so that exactly its own row comes out NaN.
void Quantise(const float* values, const Activations& x, int row) {
  int8_t* hi = x.hi + int64_t{row} * x.stride;
  int8_t* lo = x.lo + int64_t{row} * x.stride;
  for (int c = 0; c < x.num_strips; ++c) {
    const int begin = c * x.strip, end = begin + x.strip < x.cols ? begin + x.strip : x.cols;
    uint32_t top = 0;  // magnitudes compare as integers, and NaN above all
    for (int i = begin; i < end; ++i) {
      const uint32_t magnitude = BitsOf(values[i]) & 0x7fffffffu;
      if (magnitude > top) top = magnitude;
    }
    const bool finite = top < 0x7f800000u;
    const float amax = FloatOf(top);
    // Below 2^-100 the inverse would overflow; such a strip is zero to any reader of its sum.
    const float inverse = finite && amax >= 0x1p-100f ? kActMax / amax : 0.0f;
    x.scale[int64_t{row} * x.num_strips + c] = finite ? amax / kActMax : FloatOf(0x7fc00000u);
    for (int i = begin; i < end; ++i) {
      const float scaled = finite ? values[i] * inverse : 0.0f;
      const auto value = static_cast<int32_t>((scaled + kRound) - kRound);
      const auto low = static_cast<int8_t>(value & 255);
      lo[i] = low;
      hi[i] = static_cast<int8_t>((value - low) / 256);
    }
  }
  for (int i = x.cols; i < x.stride; ++i) hi[i] = lo[i] = 0;
  for (int b = 0; b < x.num_blocks; ++b) {
    int32_t sum_hi = 0, sum_lo = 0;
    for (int i = 0; i < kQuantBlock; ++i) {
      sum_hi += hi[b * kQuantBlock + i];
      sum_lo += lo[b * kQuantBlock + i];
    }
    x.sum_hi[int64_t{row} * x.num_blocks + b] = sum_hi;
    x.sum_lo[int64_t{row} * x.num_blocks + b] = sum_lo;
  }
  if (x.strip == kSuper) SuperSums(x, row);
}

struct Token {
  const int8_t *hi, *lo;
  const float* scale;
};
Token TokenOf(const Activations& x, int t) {
  return {x.hi + int64_t{t} * x.stride, x.lo + int64_t{t} * x.stride,
          x.scale + int64_t{t} * x.num_strips};
}

int32_t Joined(const Token& token, int column) { return 256 * token.hi[column] + token.lo[column]; }

// Per strip an exact integer sum, one conversion, one fused multiply-add; then the spilled blocks
// of the row, in order; then the bias.
float DotMxfp4(const PackedMatrix& w, const uint8_t* panel, int lane, const Token& x) {
  const int blocks = w.cols / kQuantBlock, strips = (w.cols + kStrip - 1) / kStrip;
  float sum = 0.0f;
  for (int c = 0; c < strips; ++c) {
    int32_t exact = 0;
    for (int b = c * kStripBlocks; b < blocks && b < (c + 1) * kStripBlocks; ++b) {
      const int shift = Mxfp4Shifts(panel, w.cols)[b * kPanelRows + lane] >> 4;
      for (int i = 0; i < kQuantBlock; ++i) {
        const int code = Mxfp4Code(panel, w.cols, b, lane, i);
        exact += (kTwiceE2m1[code] << shift) * Joined(x, b * kQuantBlock + i);
      }
    }
    const float scale = FloatOf(uint32_t{Mxfp4Bases(panel)[c * kPanelRows + lane]} << 23);
    sum = FusedMulAdd(static_cast<float>(exact), scale * x.scale[c], sum);
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
      const float scale = spill.scale * x.scale[spill.block / kStripBlocks];
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
    sum = FusedMulAdd(static_cast<float>(exact), scale * x.scale[b / kStripBlocks], sum);
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
    return table;
  }();
  return kTable;
}

}  // namespace hearth
