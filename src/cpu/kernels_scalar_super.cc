// SPDX-License-Identifier: Apache-2.0
// The definition of products with K-quants and IQ4_XS: everything inside a superblock of 256
// columns is exact in int32, then come fused multiply-adds: one for each plane of the activations
// and one for minima (docs/numerics.md).
#include <cstdint>

#include "base/num.h"
#include "cpu/kernels_parts.h"
#include "cpu/panels.h"
#include "cpu/panels_super.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

// The three exact sums of a superblock. Largest: Q6_K, 128 * 32 * 128 * 256 = 2^27; the minima,
// 63 * 32512 * 256 < 2^29.
struct Exact {
  int32_t high = 0, low = 0, min = 0;
};

template <PackKind kKind>
Exact ExactSums(const uint8_t* unit, int lane, const int8_t* hi, const int8_t* lo) {  // hi or null
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  Exact exact;
  for (int i = 0; i < kSuper; ++i) {
    const auto [scale, min] = SubScaleOf(kKind, unit, lane, i / kLayout.sub_cols);
    const int weight = scale * SuperValue(kKind, SuperCode(kKind, unit, lane, i));
    const int high = hi != nullptr ? hi[i] : 0;
    exact.high += weight * high;
    exact.low += weight * lo[i];
    exact.min += min * (256 * high + lo[i]);
  }
  return exact;
}

template <PackKind kKind>
float Dot(const PackedMatrix& w, const uint8_t* panel, int lane, const Activations& x, int token) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  float sum = 0.0f;
  for (int n = 0; n < w.cols / kSuper; ++n) {
    const uint8_t* unit = panel + int64_t{n} * kLayout.unit_bytes;
    const int64_t at = int64_t{token} * x.stride + n * kSuper;
    const bool two = x.planes == 2;
    const Exact exact = ExactSums<kKind>(unit, lane, two ? x.hi + at : nullptr, x.lo + at);
    const float x_scale = x.scale[int64_t{token} * x.num_strips + n];
    const float scale = F32FromF16(SuperFactors(unit)[lane]) * x_scale;
    if (two) sum = FusedMulAdd(static_cast<float>(exact.high), 256.0f * scale, sum);
    sum = FusedMulAdd(static_cast<float>(exact.low), scale, sum);
    if constexpr (kLayout.has_min) {
      const float min_scale = F32FromF16(SuperFactors(unit)[kPanelRows + lane]) * x_scale;
      sum = FusedMulAdd(-static_cast<float>(exact.min), min_scale, sum);
    }
  }
  return sum;
}

template <PackKind kKind>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  const PackedMatrix& w = *args.w;
  for (int p = panel_begin; p < panel_end; ++p) {
    const uint8_t* panel = w.data + p * w.panel_bytes;
    for (int t = 0; t < args.x->m; ++t) {
      for (int lane = 0; lane < kPanelRows; ++lane) {
        const int row = p * kPanelRows + lane;
        const float sum = Dot<kKind>(w, panel, lane, *args.x, t);
        args.y[t * args.y_stride + row] = args.bias != nullptr ? sum + args.bias[row] : sum;
      }
    }
  }
}

}  // namespace

void AddScalarSupers(KernelTable& table) noexcept {
  SuperKinds::ForEach(
      [&]<PackKind kKind>() { table.matmul[static_cast<int>(kKind)] = Matmul<kKind>; });
}

}  // namespace hearth
