// SPDX-License-Identifier: Apache-2.0
// Products of K-quants and IQ4_XS, whose panels cpu/panels_super.h describes: units of 16 rows by
// 256 columns with integer scales inside. As in matmul.h warps share the columns out and meet in
// integer sums; one thread per result takes the floating-point steps in the order of the
// definition.
#pragma once
#include "cuda/args.h"
#include "cuda/matmul.h"
#include "cuda/numbers.h"
namespace hearth::cuda {

constexpr int kGroupCols = 64;  // of a unit; four quads of four columns for each lane of four
constexpr int kUnitGroups = kSuper / kGroupCols;

// What lies where in a unit, and the words of a group from which a lane takes its quads.
template <WeightKind kKind>
struct SuperFormat {
  static constexpr bool kHasWords = kKind == WeightKind::kQ4K || kKind == WeightKind::kQ5K;
  static constexpr bool kHasMin = kHasWords || kKind == WeightKind::kQ2K;
  static constexpr int kSubCols = kHasWords || kKind == WeightKind::kIq4Xs ? 32 : 16;
  static constexpr int kSubs = kGroupCols / kSubCols;  // of a group
  static constexpr int kScalesAt = 64;
  static constexpr int kCodesAt = kHasWords ? 256 : (kKind == WeightKind::kIq4Xs ? 192 : 320);
  static constexpr int kGroupLines = kKind == WeightKind::kQ2K   ? 4
                                     : kKind == WeightKind::kQ3K ? 6
                                     : kKind == WeightKind::kQ5K ? 10
                                     : kKind == WeightKind::kQ6K ? 12
                                                                 : 8;
  static constexpr int kUnitBytes = kCodesAt + kUnitGroups * kGroupLines * 64;
  static constexpr int kWords = kKind == WeightKind::kQ2K   ? 1
                                : kKind == WeightKind::kQ5K ? 4
                                : kKind == WeightKind::kQ6K ? 3
                                                            : 2;

  // The line of word `i` for quads t, 4 + t, 8 + t and 12 + t.
  HEARTH_DEVICE static int LineOf(int i, int t) {
    if constexpr (kKind == WeightKind::kQ2K) return t;
    if constexpr (kKind == WeightKind::kQ3K) return t / 2 * 3 + (i == 0 ? 1 + t % 2 : 0);
    if constexpr (kKind == WeightKind::kQ5K) return i < 2 ? 2 + 4 * i + t : i - 2;
    if constexpr (kKind == WeightKind::kQ6K) return 3 * t + i;
    return 4 * i + t;
  }

  // Those four quads of a row as signed bytes.
  HEARTH_DEVICE static void Quads(const uint32_t* words, int t, uint32_t* quads);
};

HEARTH_DEVICE uint32_t LowBits(uint32_t word, int shift, uint32_t mask) {
  return (word >> shift) & (0x01010101u * mask);
}
// Every byte less `offset`, where none is 128 or more before: nothing borrows from its neighbour.
HEARTH_DEVICE uint32_t LessEach(uint32_t bytes, uint32_t offset) {
  return ((bytes | 0x80808080u) - 0x01010101u * offset) ^ 0x80808080u;
}
// Four codes of four bits, a byte each, to what IQ4_XS has for them.
HEARTH_DEVICE uint32_t Iq4Values(uint32_t codes) {
  const uint32_t pairs = codes | codes >> 4;  // bytes 0 and 2 hold two codes each
  const uint32_t which = Permute(pairs, 0, 0x4420u) & 0x7777u;
  const uint32_t low =
      Permute(0xbfad9881u, 0xf6eaddcfu, which);  // -127 -104 -83 -65 -49 -35 -22 -10
  const uint32_t high = Permute(0x26190d01u, 0x71594535u, which);  // 1 13 25 38 53 69 89 113
  const uint32_t upper = (codes >> 3 & 0x01010101u) * 255u;
  return (low & ~upper) | (high & upper);
}

template <WeightKind kKind>
HEARTH_DEVICE void SuperFormat<kKind>::Quads(const uint32_t* words, int t, uint32_t* quads) {
  for (int s = 0; s < 4; ++s) {
    if constexpr (kKind == WeightKind::kQ2K) {
      quads[s] = LowBits(words[0], 2 * s, 3);
    } else if constexpr (kKind == WeightKind::kQ3K) {
      const int even = s < 3 ? 2 + 2 * s : 7, odd = s < 3 ? 1 + 2 * s : 0;
      const uint32_t third = LowBits(words[1], t % 2 == 0 ? even : odd, 1);
      quads[s] = LessEach(LowBits(words[0], 2 * s, 3) | third << 2, 4);
    } else if constexpr (kKind == WeightKind::kQ6K) {
      const uint32_t code = s < 2 ? LowBits(words[0], 4 * s, 15) << 2 | LowBits(words[2], 2 * s, 3)
                                  : LowBits(words[1], 4 * (s - 2), 15) | LowBits(words[2], 2 * s, 3)
                                                                             << 4;
      quads[s] = LessEach(code, 32);
    } else {
      quads[s] = LowBits(words[s % 2], s < 2 ? 0 : 4, 15);
      if constexpr (kKind == WeightKind::kQ5K) {
        quads[s] |= LowBits(words[2 + s % 2], 2 * t + s / 2, 1) << 4;
      } else if constexpr (kKind == WeightKind::kIq4Xs) {
        quads[s] = Iq4Values(quads[s]);
      }
    }
  }
}

struct SubScale {
  int32_t scale, min;
};

// Of sub-block `sub` of a group, in a row whose scales are `bits`: the group's 24 bits where the
// format has words, else its byte.
template <WeightKind kKind>
HEARTH_DEVICE SubScale SubScaleOf(uint32_t bits, int sub) {
  if constexpr (SuperFormat<kKind>::kHasWords) {
    const uint32_t six = bits >> (6 * sub);
    return {static_cast<int32_t>(six & 63u), static_cast<int32_t>(six >> 12 & 63u)};
  }
  if constexpr (kKind == WeightKind::kQ2K) {
    return {static_cast<int32_t>(bits & 15u), static_cast<int32_t>(bits >> 4 & 15u)};
  }
  return {static_cast<int32_t>(static_cast<int8_t>(bits & 255u)), 0};
}

// The scales of rows `row` and `row` + 1: bits for SubScaleOf. `row` is even.
template <WeightKind kKind>
HEARTH_DEVICE Words2 ScaleBits(const uint8_t* unit, int group, int sub, int row) {
  using Format = SuperFormat<kKind>;
  const uint8_t* scales = unit + Format::kScalesAt;
  if constexpr (Format::kHasWords) {
    const auto* at = reinterpret_cast<const Words2*>(scales + row * 4);
    if (group < 3) return at[group * 8];
    // Of the fourth pair a byte stands on top of each word of the others.
    const Words2 first = at[0], second = at[8], third = at[16];
    return {first.x >> 24 | (second.x >> 24) << 8 | (third.x >> 24) << 16,
            first.y >> 24 | (second.y >> 24) << 8 | (third.y >> 24) << 16};
  }
  const uint16_t both =
      *reinterpret_cast<const uint16_t*>(scales + (group * Format::kSubs + sub) * kPanelRows + row);
  return {uint32_t{both} & 255u, uint32_t{both} >> 8};
}

// A lane's share of a group: codes and minima as Mma takes them, for two blocks of 32 columns, and
// scales of its two rows for each sub-block.
template <WeightKind kKind>
struct SuperGroup {
  uint32_t codes[2][4], minima[2][4];
  int32_t scales[SuperFormat<kKind>::kSubs][2];
};

template <WeightKind kKind>
HEARTH_DEVICE void LoadSuperGroup(const uint8_t* unit, int group, SuperGroup<kKind>& out) {
  using Format = SuperFormat<kKind>;
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  const uint8_t* lines = unit + Format::kCodesAt + group * Format::kGroupLines * 64 + g * 8;
  uint32_t first[Format::kWords], second[Format::kWords], quads[2][4];
  for (int i = 0; i < Format::kWords; ++i) {
    const Words2 both = LoadOnce(lines + Format::LineOf(i, t) * 64);
    first[i] = both.x;
    second[i] = both.y;
  }
  Format::Quads(first, t, quads[0]);
  Format::Quads(second, t, quads[1]);
  for (int i = 0; i < 8; ++i) out.codes[i / 4][i % 4] = quads[i % 2][i / 2];
  Words2 bits{};
  for (int sub = 0; sub < Format::kSubs; ++sub) {
    if (sub == 0 || !Format::kHasWords) bits = ScaleBits<kKind>(unit, group, sub, 2 * g);
    const SubScale scales[2] = {SubScaleOf<kKind>(bits.x, sub), SubScaleOf<kKind>(bits.y, sub)};
    for (int row = 0; row < 2; ++row) {
      out.scales[sub][row] = scales[row].scale;
      if constexpr (Format::kHasMin) {
        // Columns of a sub-block share their minimum: 32 are both halves of a block, 16 are one.
        const uint32_t bytes = 0x01010101u * static_cast<uint32_t>(scales[row].min);
        if constexpr (Format::kSubs == 2) {
          out.minima[sub][row] = out.minima[sub][2 + row] = bytes;
        } else {
          out.minima[sub / 2][sub % 2 * 2 + row] = bytes;
        }
      }
    }
  }
}

// sums += scale of the row * (a * b), for one sub-block.
HEARTH_DEVICE void AddScaled(int32_t* sums, const uint32_t* a, const uint32_t* b,
                             const int32_t* scales) {
  int32_t part[4] = {};
  Mma(part, a, b);
  for (int i = 0; i < 4; ++i) sums[i] += scales[i / 2] * part[i];
}

// The sums of one block of 32 columns for one tile.
template <WeightKind kKind>
HEARTH_DEVICE void AddBlock(const SuperGroup<kKind>& w, int block, const uint32_t* x,
                            int32_t* sums) {
  if constexpr (SuperFormat<kKind>::kSubs == 2) {
    AddScaled(sums, w.codes[block], x, w.scales[block]);
  } else {  // a sub-block is half of what Mma takes
    const uint32_t first[4] = {w.codes[block][0], w.codes[block][1], 0, 0};
    const uint32_t second[4] = {0, 0, w.codes[block][2], w.codes[block][3]};
    AddScaled(sums, first, x, w.scales[2 * block]);
    AddScaled(sums, second, x, w.scales[2 * block + 1]);
  }
}

// A unit's exact sums: of codes with the high and the low halves, and of minima with both.
template <WeightKind kKind>
constexpr int kSuperParts = SuperFormat<kKind>::kHasMin ? 3 : 2;
// Tiles of a launch for many rows. Minima are sums of their own, and with several tiles there are
// more sums than registers.
template <WeightKind kKind>
constexpr int kSuperTiles = SuperFormat<kKind>::kHasMin ? 1 : 4;
template <int kTiles>
constexpr int kSuperItems = kTiles == 1 ? 8 : 4;  // units of a round

template <WeightKind kKind, int kTiles>
constexpr int64_t SuperSharedBytes() {
  return int64_t{4} * kSuperItems<kTiles> * kSuperParts<kKind> * kTiles * 128;
}

// One warp's groups [begin, end), counted from the panel's start, of a round that starts at unit
// `first_unit`; added to `sums` [unit, part, tile, slot, token] whenever a unit ends.
template <WeightKind kKind, int kTiles>
HEARTH_DEVICE void SumGroups(const uint8_t* panel, const ActRows& x, TileRows rows, int begin,
                             int end, int first_unit, int32_t* sums) {
  using Format = SuperFormat<kKind>;
  const int g = Thread() % kWarp / 4, t = Thread() % 4;
  int32_t high[kTiles][4] = {}, low[kTiles][4] = {}, min[kTiles][4] = {};
  for (int at = begin; at < end; ++at) {
    const int unit = at / kUnitGroups;
    SuperGroup<kKind> w;
    LoadSuperGroup<kKind>(panel + int64_t{unit} * Format::kUnitBytes, at % kUnitGroups, w);
    for (int tile = 0; tile < kTiles; ++tile) {
      for (int block = 0; block < 2; ++block) {
        uint32_t hi[2] = {}, lo[2] = {};
        if (tile * kTileTokens + g < rows.count) {
          const int64_t from = int64_t{rows.lane_x + tile * kTileTokens} * x.stride +
                               at * kGroupCols + block * kQuantBlock;
          Q8::LoadTokens(x.hi + from, hi);
          Q8::LoadTokens(x.lo + from, lo);
        }
        AddBlock<kKind>(w, block, hi, high[tile]);
        AddBlock<kKind>(w, block, lo, low[tile]);
        if constexpr (Format::kHasMin) {
          constexpr int32_t kHigh[2] = {256, 256};
          AddScaled(min[tile], w.minima[block], hi, kHigh);
          Mma(min[tile], w.minima[block], lo);
        }
      }
    }
    if (at + 1 != end && (at + 1) % kUnitGroups != 0) continue;
    int32_t* to = sums + (unit - first_unit) * kSuperParts<kKind> * kTiles * 128;
    for (int tile = 0; tile < kTiles; ++tile) {
      for (int i = 0; i < 4; ++i) {
        int32_t* place = to + tile * 128 + (g + i / 2 * 8) * kTileTokens + 2 * t + i % 2;
        SharedAdd(place, high[tile][i]);
        SharedAdd(place + kTiles * 128, low[tile][i]);
        if constexpr (Format::kHasMin) {
          SharedAdd(place + 2 * kTiles * 128, min[tile][i]);
        }
        high[tile][i] = low[tile][i] = min[tile][i] = 0;
      }
    }
  }
}

// The floating-point steps of one unit.
template <WeightKind kKind, int kTiles>
HEARTH_DEVICE float AddUnit(const uint8_t* unit, int row, float x_scale, const int32_t* sums,
                            float sum) {
  const auto* factors = reinterpret_cast<const uint16_t*>(unit);
  const float scale = FloatOfHalf(factors[row]) * x_scale;
  sum = Fma(static_cast<float>(sums[0]), 256.0f * scale, sum);
  sum = Fma(static_cast<float>(sums[kTiles * 128]), scale, sum);
  if constexpr (SuperFormat<kKind>::kHasMin) {
    const float min_scale = FloatOfHalf(factors[kPanelRows + row]) * x_scale;
    sum = Fma(-static_cast<float>(sums[2 * kTiles * 128]), min_scale, sum);
  }
  return sum;
}

template <WeightKind kKind, int kTiles>
HEARTH_DEVICE void SuperMatmulKernel(const MatmulArgs& args) {
  using Format = SuperFormat<kKind>;
  const MatmulJob& job = args.jobs[BlockY()];
  if (BlockX() >= job.num_panels) return;
  const TileRows rows = RowsOfTile<kTiles>(args, job);
  if (rows.count <= 0) return;
  auto* sums = reinterpret_cast<int32_t*>(SharedMemory());
  const uint8_t* panel = job.panels + BlockX() * job.panel_bytes;
  constexpr int kWarps = kMatmulThreads / kWarp, kItems = kSuperItems<kTiles>;
  constexpr int kUnitSums = kSuperParts<kKind> * kTiles * 128;
  const int slot = Thread() / kTileTokens, token = Thread() % kTileTokens;
  const int row = slot < 8 ? 2 * slot : 2 * (slot - 8) + 1;
  float results[kTiles] = {};
  const int units = job.cols / kSuper;
  for (int first = 0; first < units; first += kItems) {
    for (int i = Thread(); i < kItems * kUnitSums; i += kMatmulThreads) sums[i] = 0;
    Barrier();
    const int count = Min(units - first, kItems), warp = Thread() / kWarp;
    SumGroups<kKind, kTiles>(panel, args.x, rows, kUnitGroups * first + count * warp,
                             kUnitGroups * first + count * (warp + 1), first, sums);
    static_assert(kWarps == kUnitGroups);  // so many groups for each warp as there are units
    Barrier();
    for (int i = 0; i < count; ++i) {
      const uint8_t* unit = panel + int64_t{first + i} * Format::kUnitBytes;
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile * kTileTokens + token >= rows.count) continue;
        const int64_t x_row = rows.x + tile * kTileTokens;
        results[tile] =
            AddUnit<kKind, kTiles>(unit, row, args.x.scale[x_row * args.x.num_strips + first + i],
                                   sums + i * kUnitSums + tile * 128 + Thread(), results[tile]);
      }
    }
    // The next round clears what this thread alone has read here: no barrier.
  }
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile * kTileTokens + token >= rows.count) continue;
    const int64_t y_token = rows.y + tile * kTileTokens;
    const int y_row = BlockX() * kPanelRows + row;
    job.y[y_token * job.y_stride + y_row] =
        job.bias != nullptr ? results[tile] + job.bias[y_row] : results[tile];
  }
}

// One weight as a float, for the embedding.
template <WeightKind kKind>
HEARTH_DEVICE float SuperAt(const uint8_t* panel, int row, int column) {
  using Format = SuperFormat<kKind>;
  const uint8_t* unit = panel + int64_t{column / kSuper} * Format::kUnitBytes;
  const int group = column % kSuper / kGroupCols, quad = column % kGroupCols / 4, t = quad % 4;
  const uint8_t* lines = unit + Format::kCodesAt + group * Format::kGroupLines * 64 + row * 4;
  uint32_t words[Format::kWords], quads[4];
  for (int i = 0; i < Format::kWords; ++i) {
    words[i] = *reinterpret_cast<const uint32_t*>(lines + Format::LineOf(i, t) * 64);
  }
  Format::Quads(words, t, quads);
  uint32_t bytes = quads[0];  // by comparison: an index would cost local memory
  if (quad / 4 == 1) bytes = quads[1];
  if (quad / 4 == 2) bytes = quads[2];
  if (quad / 4 == 3) bytes = quads[3];
  const auto value = static_cast<int8_t>(bytes >> (8 * (column % 4)) & 255u);
  const int sub = column % kGroupCols / Format::kSubCols;
  const Words2 bits = ScaleBits<kKind>(unit, group, sub, row / 2 * 2);
  const SubScale scales = SubScaleOf<kKind>(row % 2 == 0 ? bits.x : bits.y, sub);
  const auto* factors = reinterpret_cast<const uint16_t*>(unit);
  const float weight =
      FloatOfHalf(factors[row]) * static_cast<float>(scales.scale) * static_cast<float>(value);
  if constexpr (!Format::kHasMin) return weight;
  return weight - FloatOfHalf(factors[kPanelRows + row]) * static_cast<float>(scales.min);
}

}  // namespace hearth::cuda
