// SPDX-License-Identifier: Apache-2.0
// Products of packed weights and quantised activations: one block per panel of 16 rows and tile of
// tokens. Warps share the columns out; their integer sums meet in shared memory, where order does
// not matter; then one thread per result takes the floating-point steps in the order of the
// definition.
#pragma once
#include "cuda/args.h"
#include "cuda/numbers.h"
namespace hearth::cuda {

constexpr int64_t LineUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// A lane's share of a block of 32 columns: what Mma takes. Slot g of a tile is row 2 g of the panel
// and slot g + 8 row 2 g + 1, so that a lane's two rows are neighbours in memory. Columns may come
// in any order, the same in both factors.

struct Mxfp4 {
  static constexpr int kItemBlocks = kStrip / kQuantBlock;  // blocks with one scale
  static constexpr int kItems = 16;                         // of a round
  static constexpr bool kSpills = true;

  HEARTH_DEVICE static int64_t ShiftsAt(int cols) {
    return LineUp(int64_t{(cols + kStrip - 1) / kStrip} * kPanelRows);
  }
  HEARTH_DEVICE static int64_t NibblesAt(int cols) {
    return ShiftsAt(cols) + LineUp(int64_t{cols / kQuantBlock} * kPanelRows);
  }

  // Four codes, the low 16 bits of `codes`, to signed bytes: twice E2M1's value shifted left.
  // `signs` has 255 where a code is negative.
  HEARTH_DEVICE static uint32_t Values(uint32_t codes, uint32_t signs, int shift) {
    // Twice the magnitudes 0 1 2 3 4 6 8 12; at most 12 << 3 = 96, so bytes do not touch.
    const uint32_t magnitudes =
        Permute(0x03020100u << shift, 0x0c080604u << shift, codes & 0x7777u);
    // 128 - m is -m but for the upper bit, and never borrows from the next byte.
    const uint32_t negative = (0x80808080u - magnitudes) ^ 0x80808080u;
    return (magnitudes & ~signs) | (negative & signs);
  }

  // Eight codes of a row: nibbles in memory order are columns 0 4 1 5, 2 6 3 7.
  HEARTH_DEVICE static void Expand(uint32_t codes, int shift, uint32_t& first, uint32_t& second) {
    // The upper bit of each byte is the sign of a high nibble; four further left, of a low one.
    const uint32_t lows = codes << 4;
    first = Values(codes, Permute(lows, codes, 0xd9c8u), shift);
    second = Values(codes >> 16, Permute(lows, codes, 0xfbeau), shift);
  }

  HEARTH_DEVICE static void LoadWeights(const uint8_t* panel, int cols, int block, uint32_t* a) {
    const int g = Thread() % kWarp / 4, t = Thread() % 4;
    const Words2 codes = LoadOnce(panel + NibblesAt(cols) + block * 256 + t * 64 + g * 8);
    const uint16_t shifts =
        *reinterpret_cast<const uint16_t*>(panel + ShiftsAt(cols) + block * kPanelRows + 2 * g);
    Expand(codes.x, (shifts >> 4) & 3, a[0], a[2]);
    Expand(codes.y, shifts >> 12, a[1], a[3]);
  }

  HEARTH_DEVICE static void LoadTokens(const int8_t* row, uint32_t* b) {
    const auto& bytes = *reinterpret_cast<const Words2*>(row + Thread() % 4 * 8);
    b[0] = Permute(bytes.x, bytes.y, 0x5140u);
    b[1] = Permute(bytes.x, bytes.y, 0x7362u);
  }

  HEARTH_DEVICE static float Scale(const uint8_t* panel, int, int item, int row) {
    return FloatOf(uint32_t{panel[item * kPanelRows + row]} << 23);
  }
};

struct Q8 {
  static constexpr int kItemBlocks = 1;
  static constexpr int kItems = 32;
  static constexpr bool kSpills = false;

  HEARTH_DEVICE static int64_t CodesAt(int cols) {
    return LineUp(int64_t{cols / kQuantBlock} * 32);
  }

  HEARTH_DEVICE static void LoadWeights(const uint8_t* panel, int cols, int block, uint32_t* a) {
    const int g = Thread() % kWarp / 4, t = Thread() % 4;
    const uint8_t* at = panel + CodesAt(cols) + int64_t{block} * 512 + t * 64 + g * 8;
    const Words2 first = LoadOnce(at), second = LoadOnce(at + 256);
    a[0] = first.x ^ 0x80808080u;  // stored plus 128
    a[1] = first.y ^ 0x80808080u;
    a[2] = second.x ^ 0x80808080u;
    a[3] = second.y ^ 0x80808080u;
  }

  HEARTH_DEVICE static void LoadTokens(const int8_t* row, uint32_t* b) {
    const auto* words = reinterpret_cast<const uint32_t*>(row);
    b[0] = words[Thread() % 4];
    b[1] = words[Thread() % 4 + 4];
  }

  HEARTH_DEVICE static float Scale(const uint8_t* panel, int, int item, int row) {
    return FloatOfHalf(reinterpret_cast<const uint16_t*>(panel)[item * kPanelRows + row]);
  }
};

// Rows that a block multiplies. Of a launch's tiles of tokens each has the rows behind.
struct TileRows {
  int count;   // <= kTileTokens * tiles
  int lane_x;  // row of x of the lane's token g
  int x, y;    // rows of this thread's results
};

// The tile of an expert's choices, in ascending order: threads count in pieces of the list first.
// Shared memory: a word per thread and one per token.
HEARTH_DEVICE TileRows ChosenRows(const MatmulArgs& args, const MatmulJob& job) {
  auto* counts = reinterpret_cast<int32_t*>(SharedMemory());
  int32_t* chosen = counts + kMatmulThreads;
  const int n = args.num_choices, piece = (n + kMatmulThreads - 1) / kMatmulThreads;
  const int begin = Min(Thread() * piece, n), end = Min(begin + piece, n);
  int count = 0;
  for (int i = begin; i < end; ++i) count += args.choices[i] == job.expert ? 1 : 0;
  counts[Thread()] = count;
  Barrier();
  const int first = BlockZ() * kTileTokens;
  int place = -first, total = -first;
  for (int t = 0; t * piece < n; ++t) {
    place += t < Thread() ? counts[t] : 0;
    total += counts[t];
  }
  for (int i = begin; i < end; ++i) {
    if (args.choices[i] != job.expert) continue;
    if (place >= 0 && place < kTileTokens) chosen[place] = i;
    ++place;
  }
  Barrier();
  TileRows rows{Min(total, kTileTokens), 0, 0, 0};
  if (rows.count <= 0) return rows;
  const int g = Thread() % kWarp / 4, token = Thread() % kTileTokens;
  if (g < rows.count) rows.lane_x = chosen[g] / args.sharing;
  if (token < rows.count) {
    rows.y = chosen[token];
    rows.x = rows.y / args.sharing;
  }
  Barrier();  // sums come to the same memory
  return rows;
}

template <int kTiles>
HEARTH_DEVICE TileRows RowsOfTile(const MatmulArgs& args, const MatmulJob& job) {
  if constexpr (kTiles == 1) {
    if (args.choices != nullptr) return ChosenRows(args, job);
  }
  const int begin = job.range != nullptr ? job.range[0] : 0;
  const int end = job.range != nullptr ? job.range[1] : args.m;
  const int first = begin + BlockZ() * kTileTokens * kTiles;
  const int own = first + Thread() % kTileTokens;
  return {Min(end - first, kTileTokens * kTiles), first + Thread() % kWarp / 4, own, own};
}

// One warp's blocks [begin, end) of a round that starts at item `first_item`: the exact sums of hi
// and lo, joined, are added to `sums` [item, tile, slot, token] whenever an item ends.
template <class Format, int kTiles>
HEARTH_DEVICE void SumBlocks(const MatmulJob& job, const uint8_t* panel, const ActRows& x,
                             TileRows rows, int begin, int end, int first_item, int32_t* sums) {
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  int32_t high[kTiles][4] = {}, low[kTiles][4] = {};
  for (int block = begin; block < end; ++block) {
    uint32_t a[4];
    Format::LoadWeights(panel, job.cols, block, a);
    for (int tile = 0; tile < kTiles; ++tile) {
      uint32_t hi[2] = {}, lo[2] = {};
      if (tile * kTileTokens + g < rows.count) {
        const int64_t at =
            int64_t{rows.lane_x + tile * kTileTokens} * x.stride + block * kQuantBlock;
        Format::LoadTokens(x.hi + at, hi);
        Format::LoadTokens(x.lo + at, lo);
      }
      Mma(high[tile], a, hi);
      Mma(low[tile], a, lo);
    }
    const bool ends = block + 1 == end || (block + 1) % Format::kItemBlocks == 0;
    if (!ends) continue;
    int32_t* to = sums + (block / Format::kItemBlocks - first_item) * kTiles * 128;
    for (int tile = 0; tile < kTiles; ++tile) {
      for (int i = 0; i < 4; ++i) {
        const int slot = g + i / 2 * 8, token = 2 * t + i % 2;
        SharedAdd(to + tile * 128 + slot * kTileTokens + token, 256 * high[tile][i] + low[tile][i]);
        high[tile][i] = low[tile][i] = 0;
      }
    }
  }
}

// Blocks that could not be folded, in order, after everything else.
HEARTH_DEVICE float AddSpills(const MatmulJob& job, int panel, int row, const ActRows& x,
                              int64_t token, float sum) {
  if (job.spill_begin == nullptr) return sum;
  for (int s = job.spill_begin[panel]; s < job.spill_begin[panel + 1]; ++s) {
    const SpilledBlock& spill = job.spills[s];
    if (spill.row != panel * kPanelRows + row) continue;
    int32_t exact = 0;
    for (int i = 0; i < kQuantBlock; ++i) {
      const int64_t at = token * x.stride + spill.block * kQuantBlock + i;
      exact += spill.w[i] * (256 * x.hi[at] + x.lo[at]);
    }
    const float scale =
        spill.scale * x.scale[token * x.num_strips + spill.block * kQuantBlock / kStrip];
    sum = Fma(static_cast<float>(exact), scale, sum);
  }
  return sum;
}

// Shared memory of a launch.
template <class Format, int kTiles>
constexpr int64_t MatmulSharedBytes() {
  return int64_t{4} * Format::kItems * kTiles * 128;
}

template <class Format, int kTiles>
HEARTH_DEVICE void MatmulKernel(const MatmulArgs& args) {
  const MatmulJob& job = args.jobs[BlockY()];
  if (BlockX() >= job.num_panels) return;
  const TileRows rows = RowsOfTile<kTiles>(args, job);
  if (rows.count <= 0) return;
  auto* sums = reinterpret_cast<int32_t*>(SharedMemory());
  const uint8_t* panel = job.panels + BlockX() * job.panel_bytes;
  constexpr int kWarps = kMatmulThreads / kWarp,
                kRoundBlocks = Format::kItems * Format::kItemBlocks;
  // This thread's results: one row, the same token of every tile.
  const int slot = Thread() / kTileTokens, token = Thread() % kTileTokens;
  const int row = slot < 8 ? 2 * slot : 2 * (slot - 8) + 1;
  float results[kTiles] = {};
  const int blocks = job.cols / kQuantBlock;
  for (int first = 0; first < blocks; first += kRoundBlocks) {
    for (int i = Thread(); i < Format::kItems * kTiles * 128; i += kMatmulThreads) sums[i] = 0;
    Barrier();
    const int count = Min(blocks - first, kRoundBlocks), warp = Thread() / kWarp;
    const int first_item = first / Format::kItemBlocks;
    SumBlocks<Format, kTiles>(job, panel, args.x, rows, first + count * warp / kWarps,
                              first + count * (warp + 1) / kWarps, first_item, sums);
    Barrier();
    const int items = (count + Format::kItemBlocks - 1) / Format::kItemBlocks;
    for (int item = 0; item < items; ++item) {
      const float scale = Format::Scale(panel, job.cols, first_item + item, row);
      const int strip = (first_item + item) * Format::kItemBlocks * kQuantBlock / kStrip;
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile * kTileTokens + token >= rows.count) continue;
        const int64_t x_row = rows.x + tile * kTileTokens;
        const auto exact = static_cast<float>(sums[(item * kTiles + tile) * 128 + Thread()]);
        results[tile] =
            Fma(exact, scale * args.x.scale[x_row * args.x.num_strips + strip], results[tile]);
      }
    }
    // The next round clears what this thread alone has read here: no barrier.
  }
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile * kTileTokens + token >= rows.count) continue;
    const int64_t x_row = rows.x + tile * kTileTokens, y_token = rows.y + tile * kTileTokens;
    float sum = results[tile];
    if constexpr (Format::kSpills) sum = AddSpills(job, BlockX(), row, args.x, x_row, sum);
    const int y_row = BlockX() * kPanelRows + row;
    job.y[y_token * job.y_stride + y_row] = job.bias != nullptr ? sum + job.bias[y_row] : sum;
  }
}

}  // namespace hearth::cuda
