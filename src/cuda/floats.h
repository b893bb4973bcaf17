// SPDX-License-Identifier: Apache-2.0
// Weights as floats: products with F32, F16 and BF16, and rows of any matrix for the embedding.
#pragma once
#include "cuda/args.h"
#include "cuda/blocks.h"
#include "cuda/matmul.h"
#include "cuda/numbers.h"
#include "cuda/supers.h"
namespace hearth::cuda {

// Panels of floats hold [blocks][16 rows][32 columns]; BF16 has column i beside column 16 + i.
template <WeightKind kKind>
HEARTH_DEVICE float FloatAt(const uint8_t* panel, int row, int column) {
  const int64_t first = (int64_t{column / kQuantBlock} * kPanelRows + row) * kQuantBlock;
  const int rest = column % kQuantBlock;
  if constexpr (kKind == WeightKind::kF32) {
    return reinterpret_cast<const float*>(panel)[first + rest];
  } else if constexpr (kKind == WeightKind::kF16) {
    return FloatOfHalf(reinterpret_cast<const uint16_t*>(panel)[first + rest]);
  } else {
    const int place = rest % 16 * 2 + rest / 16;
    return FloatOf(uint32_t{reinterpret_cast<const uint16_t*>(panel)[first + place]} << 16);
  }
}

// One row and sixteen lanes per half warp: column i in lane i mod 16, ascending. No shared memory.
template <WeightKind kKind>
HEARTH_DEVICE void FloatMatmulKernel(const FloatMatmulArgs& args) {
  const MatmulJob& job = args.jobs[BlockY()];
  if (BlockX() >= job.num_panels) return;
  const int begin_row = job.range != nullptr ? job.range[0] : 0;
  const int end_row = job.range != nullptr ? job.range[1] : args.m;
  const int first = begin_row + BlockZ() * kTileTokens, count = Min(end_row - first, kTileTokens);
  if (count <= 0) return;
  const uint8_t* panel = job.panels + BlockX() * job.panel_bytes;
  const float* x = args.x + first * args.x_stride;
  const int row = Thread() / 16, lane = Thread() % 16;
  float sums[kTileTokens] = {};
  for (int column = lane; column < job.cols; column += 16) {
    const float weight = FloatAt<kKind>(panel, row, column);
    for (int t = 0; t < kTileTokens; ++t) {
      if (t < count) sums[t] = Fma(weight, x[t * args.x_stride + column], sums[t]);
    }
  }
  const int y_row = BlockX() * kPanelRows + row;
  for (int t = 0; t < kTileTokens; ++t) {
    if (t >= count) break;  // all threads at once
    const float sum = JoinLanes(sums[t]);
    if (lane != 0) continue;
    job.y[(first + t) * job.y_stride + y_row] = job.bias != nullptr ? sum + job.bias[y_row] : sum;
  }
}

HEARTH_DEVICE float Mxfp4At(const EmbedArgs& a, const uint8_t* panel, int row, int column) {
  const int block = column / kQuantBlock, rest = column % kQuantBlock, lane = row % kPanelRows;
  if (a.spill_begin != nullptr) {
    const int number = row / kPanelRows;
    for (int s = a.spill_begin[number]; s < a.spill_begin[number + 1]; ++s) {
      const SpilledBlock& spill = a.spills[s];
      if (spill.row == row && spill.block == block) {
        return spill.scale * static_cast<float>(spill.w[rest]);
      }
    }
  }
  const uint8_t byte =
      panel[Mxfp4::NibblesAt(a.cols) + block * 256 + rest / 8 * 64 + lane * 4 + rest % 4];
  const int code = rest % 8 < 4 ? byte & 15 : byte >> 4;
  const int shift = panel[Mxfp4::ShiftsAt(a.cols) + block * kPanelRows + lane] >> 4;
  // Twice the magnitudes 0 1 2 3 4 6 8 12.
  const auto magnitude = static_cast<int>(Permute(0x03020100u, 0x0c080604u, code & 7) & 255u);
  const float scale = FloatOf(uint32_t{panel[column / kStrip * kPanelRows + lane]} << 23);
  return static_cast<float>((code >= 8 ? -magnitude : magnitude) << shift) * scale;
}

HEARTH_DEVICE float Q8At(const EmbedArgs& a, const uint8_t* panel, int row, int column) {
  const int block = column / kQuantBlock, rest = column % kQuantBlock, lane = row % kPanelRows;
  const int code =
      panel[Q8::CodesAt(a.cols) + int64_t{block} * 512 + rest / 4 * 64 + lane * 4 + rest % 4] - 128;
  return Q8::Scale(panel, a.cols, block, lane) * static_cast<float>(code);
}

// No shared memory.
HEARTH_DEVICE void EmbedKernel(const EmbedArgs& a) {
  const int row = a.tokens[BlockX()], lane = row % kPanelRows;
  const uint8_t* panel = a.panels + row / kPanelRows * a.panel_bytes;
  float* x = a.x + int64_t{BlockX()} * a.cols;
  for (int i = Thread(); i < a.cols; i += kRowThreads) {
    switch (a.kind) {
      case WeightKind::kMxfp4:
        x[i] = Mxfp4At(a, panel, row, i);
        break;
      case WeightKind::kQ8:
        x[i] = Q8At(a, panel, row, i);
        break;
      case WeightKind::kQ4_0:
        x[i] = BlockAt<WeightKind::kQ4_0>(panel, lane, i);
        break;
      case WeightKind::kQ4_1:
        x[i] = BlockAt<WeightKind::kQ4_1>(panel, lane, i);
        break;
      case WeightKind::kQ5_0:
        x[i] = BlockAt<WeightKind::kQ5_0>(panel, lane, i);
        break;
      case WeightKind::kQ5_1:
        x[i] = BlockAt<WeightKind::kQ5_1>(panel, lane, i);
        break;
      case WeightKind::kIq4Nl:
        x[i] = BlockAt<WeightKind::kIq4Nl>(panel, lane, i);
        break;
      case WeightKind::kQ2K:
        x[i] = SuperAt<WeightKind::kQ2K>(panel, lane, i);
        break;
      case WeightKind::kQ3K:
        x[i] = SuperAt<WeightKind::kQ3K>(panel, lane, i);
        break;
      case WeightKind::kQ4K:
        x[i] = SuperAt<WeightKind::kQ4K>(panel, lane, i);
        break;
      case WeightKind::kQ5K:
        x[i] = SuperAt<WeightKind::kQ5K>(panel, lane, i);
        break;
      case WeightKind::kQ6K:
        x[i] = SuperAt<WeightKind::kQ6K>(panel, lane, i);
        break;
      case WeightKind::kIq4Xs:
        x[i] = SuperAt<WeightKind::kIq4Xs>(panel, lane, i);
        break;
      case WeightKind::kF32:
        x[i] = FloatAt<WeightKind::kF32>(panel, lane, i);
        break;
      case WeightKind::kF16:
        x[i] = FloatAt<WeightKind::kF16>(panel, lane, i);
        break;
      case WeightKind::kBf16:
        x[i] = FloatAt<WeightKind::kBf16>(panel, lane, i);
        break;
    }
  }
}

}  // namespace hearth::cuda
