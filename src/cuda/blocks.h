// SPDX-License-Identifier: Apache-2.0
// Products of Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL, whose panels cpu/panels_blocks.h describes: units
// of 16 rows by two blocks of 32 columns, one factor and perhaps one minimum for each block and
// row. A warp takes whole units, so that every byte of weights is read once; one thread per result
// takes the floating-point steps in the order of the definition.
#pragma once
#include "cuda/args.h"
#include "cuda/matmul.h"
#include "cuda/numbers.h"
#include "cuda/supers.h"
namespace hearth::cuda {

template <WeightKind kKind>
struct BlockFormat {
  static constexpr bool kHasMin = kKind == WeightKind::kQ4_1 || kKind == WeightKind::kQ5_1;
  static constexpr bool kHasFifth = kKind == WeightKind::kQ5_0 || kKind == WeightKind::kQ5_1;
  static constexpr int kMinimaAt = 64;
  static constexpr int kFifthAt = kHasMin ? 128 : 64;
  static constexpr int kCodesAt = kFifthAt + (kHasFifth ? 128 : 0);
  static constexpr int kUnitBytes = kCodesAt + 8 * 64;
  static constexpr int kParts = kHasMin ? 2 : 1;        // sums of codes, sums of activations
  static constexpr int kRoundUnits = kHasMin ? 8 : 16;  // 16 KiB of sums
  static constexpr int64_t kSharedBytes = int64_t{4} * 2 * kRoundUnits * kParts * 128;

  HEARTH_DEVICE static int64_t PanelBytes(int cols) {
    return int64_t{(cols + 2 * kQuantBlock - 1) / (2 * kQuantBlock)} * kUnitBytes;
  }

  // Four codes of block `block` of a unit, `fifth` bits beside them from bit `bit` on, as signed
  // bytes.
  HEARTH_DEVICE static uint32_t Values(uint32_t codes, uint32_t fifth, int block, int bit) {
    uint32_t values = LowBits(codes, 4 * block, 15);
    if constexpr (kHasFifth) values |= LowBits(fifth, 4 * block + bit, 1) << 4;
    if constexpr (kKind == WeightKind::kQ4_0) return LessEach(values, 8);
    if constexpr (kKind == WeightKind::kQ5_0) return LessEach(values, 16);
    if constexpr (kKind == WeightKind::kIq4Nl) return Iq4Values(values);
    return values;
  }
};

// A lane's share of a unit: both blocks as Mma takes them.
template <WeightKind kKind>
HEARTH_DEVICE void LoadUnit(const uint8_t* unit, uint32_t (&a)[2][4]) {
  using Format = BlockFormat<kKind>;
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  for (int half = 0; half < 2; ++half) {  // columns 4 t and 16 + 4 t and on
    const Words2 codes = LoadOnce(unit + Format::kCodesAt + (4 * half + t) * 64 + g * 8);
    Words2 fifth{};
    if constexpr (Format::kHasFifth) {
      fifth = LoadOnce(unit + Format::kFifthAt + half * 64 + g * 8);
    }
    for (int block = 0; block < 2; ++block) {
      a[block][2 * half] = Format::Values(codes.x, fifth.x, block, t);
      a[block][2 * half + 1] = Format::Values(codes.y, fifth.y, block, t);
    }
  }
}

// Two neighbouring sums, of tokens 2 t and 2 t + 1 in slots g and g + 8.
HEARTH_DEVICE void StoreTileSums(const int32_t* high, const int32_t* low, int32_t* to) {
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  for (int half = 0; half < 2; ++half) {
    const int i = 2 * half;
    *reinterpret_cast<Words2*>(to + (g + 8 * half) * kTileTokens + 2 * t) = {
        static_cast<uint32_t>(256 * high[i] + low[i]),
        static_cast<uint32_t>(256 * high[i + 1] + low[i + 1])};
  }
}

// One warp's unit `unit` of the panel: exact sums of its blocks to `sums` [block, part, slot,
// token]. A second block that is not there is left out.
template <WeightKind kKind>
HEARTH_DEVICE void SumUnit(const MatmulJob& job, const uint8_t* panel, const ActRows& x,
                           TileRows rows, int unit, int32_t* sums) {
  using Format = BlockFormat<kKind>;
  const int g = Thread() % kWarp / 4;
  uint32_t a[2][4];
  LoadUnit<kKind>(panel + int64_t{unit} * Format::kUnitBytes, a);
  for (int block = 0; block < 2; ++block) {
    const int column = (2 * unit + block) * kQuantBlock;
    if (column >= job.cols) break;
    uint32_t hi[2] = {}, lo[2] = {};
    if (g < rows.count) {
      const int64_t at = int64_t{rows.lane_x} * x.stride + column;
      Q8::LoadTokens(x.hi + at, hi);
      Q8::LoadTokens(x.lo + at, lo);
    }
    int32_t high[4] = {}, low[4] = {};
    Mma(high, a[block], hi);
    Mma(low, a[block], lo);
    int32_t* to = sums + block * Format::kParts * 128;
    StoreTileSums(high, low, to);
    if constexpr (Format::kHasMin) {
      constexpr uint32_t kOnes[4] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};
      int32_t sum_high[4] = {}, sum_low[4] = {};
      Mma(sum_high, kOnes, hi);
      Mma(sum_low, kOnes, lo);
      StoreTileSums(sum_high, sum_low, to + 128);
    }
  }
}

// The floating-point steps of one block.
template <WeightKind kKind>
HEARTH_DEVICE float AddBlockSums(const uint8_t* unit, int factor, float x_scale,
                                 const int32_t* sums, float sum) {
  const auto* factors = reinterpret_cast<const uint16_t*>(unit);
  sum = Fma(static_cast<float>(sums[0]), FloatOfHalf(factors[factor]) * x_scale, sum);
  if constexpr (BlockFormat<kKind>::kHasMin) {
    const auto* minima = reinterpret_cast<const uint16_t*>(unit + BlockFormat<kKind>::kMinimaAt);
    sum = Fma(static_cast<float>(sums[128]), FloatOfHalf(minima[factor]) * x_scale, sum);
  }
  return sum;
}

// Shared memory: BlockFormat::kSharedBytes. Tiles of kTileTokens.
template <WeightKind kKind>
HEARTH_DEVICE void BlockMatmulKernel(const MatmulArgs& args) {
  using Format = BlockFormat<kKind>;
  constexpr int kWarps = kMatmulThreads / kWarp, kRoundBlocks = 2 * Format::kRoundUnits;
  constexpr int kBlockSums = Format::kParts * 128;
  const MatmulJob& job = args.jobs[BlockY()];
  if (BlockX() >= job.num_panels) return;
  const TileRows rows = RowsOfTile<1>(args, job);
  if (rows.count <= 0) return;
  auto* sums = reinterpret_cast<int32_t*>(SharedMemory());
  const uint8_t* panel = job.panels + BlockX() * job.panel_bytes;
  const int slot = Thread() / kTileTokens, token = Thread() % kTileTokens;
  const int row = slot < 8 ? 2 * slot : 2 * (slot - 8) + 1;
  const int blocks = job.cols / kQuantBlock;
  float result = 0.0f;
  for (int first = 0; first < blocks; first += kRoundBlocks) {
    const int count = Min(blocks - first, kRoundBlocks);
    for (int unit = Thread() / kWarp; 2 * unit < count; unit += kWarps) {
      SumUnit<kKind>(job, panel, args.x, rows, first / 2 + unit, sums + 2 * unit * kBlockSums);
    }
    Barrier();
    for (int i = 0; i < count && token < rows.count; ++i) {
      const uint8_t* unit = panel + int64_t{(first + i) / 2} * Format::kUnitBytes;
      const int strip = (first + i) * kQuantBlock / kStrip;
      result = AddBlockSums<kKind>(unit, i % 2 * kPanelRows + row,
                                   args.x.scale[int64_t{rows.x} * args.x.num_strips + strip],
                                   sums + i * kBlockSums + Thread(), result);
    }
    Barrier();  // the next round's sums come to the same memory
  }
  if (token >= rows.count) return;
  const int y_row = BlockX() * kPanelRows + row;
  job.y[int64_t{rows.y} * job.y_stride + y_row] =
      job.bias != nullptr ? result + job.bias[y_row] : result;
}

// One weight as a float, for the embedding.
template <WeightKind kKind>
HEARTH_DEVICE float BlockAt(const uint8_t* panel, int row, int column) {
  using Format = BlockFormat<kKind>;
  const uint8_t* unit = panel + int64_t{column / (2 * kQuantBlock)} * Format::kUnitBytes;
  const int block = column / kQuantBlock % 2, rest = column % kQuantBlock;
  const uint32_t codes =
      *reinterpret_cast<const uint32_t*>(unit + Format::kCodesAt + rest / 4 * 64 + row * 4);
  uint32_t fifth = 0;
  if constexpr (Format::kHasFifth) {
    fifth = *reinterpret_cast<const uint32_t*>(unit + Format::kFifthAt + rest / 16 * 64 + row * 4);
  }
  const uint32_t bytes = Format::Values(codes, fifth, block, rest % 16 / 4);
  const auto value = static_cast<int8_t>(bytes >> (8 * (rest % 4)) & 255u);
  const int factor = block * kPanelRows + row;
  const float weight =
      FloatOfHalf(reinterpret_cast<const uint16_t*>(unit)[factor]) * static_cast<float>(value);
  if constexpr (!Format::kHasMin) return weight;
  return weight + FloatOfHalf(reinterpret_cast<const uint16_t*>(unit + Format::kMinimaAt)[factor]);
}

}  // namespace hearth::cuda
