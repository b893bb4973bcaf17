// SPDX-License-Identifier: Apache-2.0
// The definition of products with F32, F16 and BF16 weights, which read activations as floats.
#include <bit>
#include <cstdint>

#include "base/num.h"
#include "cpu/kernels_parts.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

float F32At(const uint8_t* panel, int lane, int column) {
  return reinterpret_cast<const float*>(panel)[FloatPlace(lane, column)];
}
float F16At(const uint8_t* panel, int lane, int column) {
  return F32FromF16(reinterpret_cast<const uint16_t*>(panel)[FloatPlace(lane, column)]);
}
float Bf16At(const uint8_t* panel, int lane, int column) {
  return F32FromBf16(reinterpret_cast<const uint16_t*>(panel)[Bf16Place(lane, column)]);
}

// Sixteen lanes, column i in lane i mod 16, each ascending; then the lanes are joined, and the bias
// comes last.
template <float (*kAt)(const uint8_t*, int, int)>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  const PackedMatrix& w = *args.w;
  for (int row = panel_begin * kPanelRows; row < panel_end * kPanelRows; ++row) {
    const uint8_t* panel = w.data + row / kPanelRows * w.panel_bytes;
    for (int t = 0; t < args.x->m; ++t) {
      const float* x = args.xf + t * args.xf_stride;
      float lanes[16] = {};
      for (int i = 0; i < w.cols; ++i) {
        lanes[i % 16] = FusedMulAdd(kAt(panel, row % kPanelRows, i), x[i], lanes[i % 16]);
      }
      const float sum = JoinLanes(lanes);
      args.y[t * args.y_stride + row] = args.bias != nullptr ? sum + args.bias[row] : sum;
    }
  }
}

}  // namespace

void AddScalarFloats(KernelTable& table) noexcept {
  table.matmul[static_cast<int>(PackKind::kF32)] = Matmul<F32At>;
  table.matmul[static_cast<int>(PackKind::kF16)] = Matmul<F16At>;
  table.matmul[static_cast<int>(PackKind::kBf16)] = Matmul<Bf16At>;
}

}  // namespace hearth
