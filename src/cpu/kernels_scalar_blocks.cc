// SPDX-License-Identifier: Apache-2.0
// The definition of products with Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL weights.
#include <cstdint>

#include "base/num.h"
#include "cpu/kernels_parts.h"
#include "cpu/panels_blocks.h"

namespace hearth {
namespace {

#include "cpu/canon.inl"

// Per block an exact integer sum, one conversion, one fused multiply-add; then, where there is a
// minimum, the same with the sum of the block's activations.
template <PackKind kKind>
float Dot(const PackedMatrix& w, const uint8_t* panel, int lane, const Activations& x, int t) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  const int8_t* hi = x.planes == 2 ? x.hi + int64_t{t} * x.stride : nullptr;
  const int8_t* lo = x.lo + int64_t{t} * x.stride;
  float sum = 0.0f;
  for (int b = 0; b < w.cols / kQuantBlock; ++b) {
    const uint8_t* unit = panel + b / 2 * UnitBytes(kTraits);
    const float scale = x.scale[int64_t{t} * x.num_strips + b * kQuantBlock / x.strip];
    int32_t exact = 0, block_sum = 0;
    for (int i = 0; i < kQuantBlock; ++i) {
      const int at = b * kQuantBlock + i;
      const int value = (hi != nullptr ? 256 * hi[at] : 0) + lo[at];
      exact += BlockWeight(kTraits, unit, b % 2, lane, i) * value;
      block_sum += value;
    }
    const int factor = b % 2 * kPanelRows + lane;
    sum = FusedMulAdd(static_cast<float>(exact), F32FromF16(FactorsOf(unit)[factor]) * scale, sum);
    if (!kTraits.has_min) continue;
    sum =
        FusedMulAdd(static_cast<float>(block_sum), F32FromF16(MinimaOf(unit)[factor]) * scale, sum);
  }
  return sum;
}

template <PackKind kKind>
void Matmul(const MatmulArgs& args, int panel_begin, int panel_end) {
  for (int r = panel_begin * kPanelRows; r < panel_end * kPanelRows; ++r) {
    const uint8_t* panel = args.w->data + r / kPanelRows * args.w->panel_bytes;
    for (int t = 0; t < args.x->m; ++t) {
      const float dot = Dot<kKind>(*args.w, panel, r % kPanelRows, *args.x, t);
      args.y[t * args.y_stride + r] = args.bias != nullptr ? dot + args.bias[r] : dot;
    }
  }
}

}  // namespace

void AddScalarBlocks(KernelTable& table) noexcept {
  BlockKinds::ForEach(
      [&]<PackKind kKind>() { table.matmul[static_cast<int>(kKind)] = Matmul<kKind>; });
}

}  // namespace hearth
