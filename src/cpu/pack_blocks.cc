// SPDX-License-Identifier: Apache-2.0
// Q4_0, Q4_1, Q5_0, Q5_1 and IQ4_NL to panels, sixteen rows and two blocks at once.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/num.h"
#include "cpu/pack_format.h"
#include "cpu/pack_lines.h"
#include "cpu/panels_blocks.h"
#include "tensor/iq_tables.h"

namespace hearth {
namespace {

static_assert(std::equal(std::begin(kIq4Values), std::end(kIq4Values), kIq4Codes));

// A block as files have it: factor, minimum, fifth bits, nibbles.
constexpr int kMinInFile = 2;
constexpr int FifthInFile(BlockTraits traits) { return traits.has_min ? 4 : 2; }
constexpr int CodesInFile(BlockTraits traits) {
  return FifthInFile(traits) + (traits.has_fifth ? 4 : 0);
}
constexpr int FileBytes(BlockTraits traits) { return CodesInFile(traits) + 16; }

// Stands in for blocks that are not there.
constexpr uint8_t kNoBlock[24] = {};

// The same block of sixteen rows.
using Blocks = const uint8_t* [kPanelRows];

void PackF16s(const Blocks& blocks, int at, uint8_t* out) {
  for (int lane = 0; lane < kPanelRows; ++lane) std::memcpy(out + 2 * lane, blocks[lane] + at, 2);
}

// The file has columns i and i + 16 in the halves of a byte, the panel column i of two blocks.
void PackCodes(const Blocks& first, const Blocks& second, int at, uint8_t* out) {
  const __m128i low = _mm_set1_epi8(15), high = _mm_set1_epi8(static_cast<char>(0xf0));
  for (int g = 0; g < 4; ++g) {
    __m128i front[4], back[4];  // columns 0 to 15, and 16 to 31
    for (int i = 0; i < 4; ++i) {
      const __m128i a = LoadLine(first[4 * g + i] + at), b = LoadLine(second[4 * g + i] + at);
      front[i] = _mm_or_si128(_mm_and_si128(a, low), _mm_and_si128(_mm_slli_epi16(b, 4), high));
      back[i] = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(a, 4), low), _mm_and_si128(b, high));
    }
    Transpose(front);
    Transpose(back);
    for (int i = 0; i < 4; ++i) {
      StoreLine(out + i * 64 + g * 16, front[i]);
      StoreLine(out + (4 + i) * 64 + g * 16, back[i]);
    }
  }
}

// Bit 4k + i of each group of sixteen goes to bit 4i + k: a 4 by 4 transpose by two exchanges.
uint64_t SwapBits(uint64_t bits) {
  uint64_t differ = (bits ^ (bits >> 3)) & 0x0a0a0a0a0a0a0a0au;
  bits ^= differ ^ (differ << 3);
  differ = (bits ^ (bits >> 6)) & 0x00cc00cc00cc00ccu;
  return bits ^ differ ^ (differ << 6);
}

// Each nibble of sixteen bits in the low half of a byte of its own.
uint32_t Spread(uint64_t bits) {
  auto word = static_cast<uint32_t>(bits & 0xffff);
  word = (word | word << 8) & 0x00ff00ffu;
  return (word | word << 4) & 0x0f0f0f0fu;
}

void PackFifth(const Blocks& first, const Blocks& second, int at, uint8_t* out) {
  for (int lane = 0; lane < kPanelRows; ++lane) {
    uint32_t a, b;
    std::memcpy(&a, first[lane] + at, 4);
    std::memcpy(&b, second[lane] + at, 4);
    const uint64_t swapped = SwapBits(a | uint64_t{b} << 32);
    for (int j = 0; j < 2; ++j) {
      const uint32_t word = Spread(swapped >> (16 * j)) | Spread(swapped >> (32 + 16 * j)) << 4;
      std::memcpy(out + j * 64 + lane * 4, &word, 4);
    }
  }
}

template <PackKind kKind>
bool CheckUnit(const uint8_t* unit) {
  // Factors, and right behind them minima.
  return FiniteF16s(FactorsOf(unit), (BlockTraitsOf(kKind).has_min ? 4 : 2) * kPanelRows);
}

template <PackKind kKind>
void PackUnit(const Blocks& first, const Blocks& second, uint8_t* unit) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  PackF16s(first, 0, unit);
  PackF16s(second, 0, unit + 2 * kPanelRows);
  if (kTraits.has_min) {
    PackF16s(first, kMinInFile, unit + kMinimaAt);
    PackF16s(second, kMinInFile, unit + kMinimaAt + 2 * kPanelRows);
  }
  if (kTraits.has_fifth) PackFifth(first, second, FifthInFile(kTraits), unit + FifthAt(kTraits));
  PackCodes(first, second, CodesInFile(kTraits), unit + CodesAt(kTraits));
}

template <PackKind kKind>
bool PackPanel(const MatView& matrix, int first_row, int count, uint8_t* panel,
               std::vector<SpilledBlock>&) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  constexpr int kBytes = FileBytes(kTraits);
  static_assert(kBytes <= static_cast<int>(sizeof kNoBlock));
  const int blocks = matrix.cols / kQuantBlock;
  bool plausible = true;
  for (int n = 0; n < NumUnits(matrix.cols); ++n) {
    Blocks first, second;
    for (int lane = 0; lane < kPanelRows; ++lane) {
      const auto* row =
          reinterpret_cast<const uint8_t*>(matrix.data + (first_row + lane) * matrix.row_bytes);
      const bool has_second = lane < count && 2 * n + 1 < blocks;
      first[lane] = lane < count ? row + int64_t{2} * n * kBytes : kNoBlock;
      second[lane] = has_second ? row + (int64_t{2} * n + 1) * kBytes : kNoBlock;
    }
    uint8_t* unit = panel + int64_t{n} * UnitBytes(kTraits);
    PackUnit<kKind>(first, second, unit);
    plausible &= CheckUnit<kKind>(unit);
  }
  return plausible;
}

template <PackKind kKind>
bool CheckPanel(const PackedMatrix& packed, const uint8_t* panel) {
  bool sound = true;
  for (int n = 0; n < NumUnits(packed.cols); ++n) {
    sound &= CheckUnit<kKind>(panel + int64_t{n} * UnitBytes(BlockTraitsOf(kKind)));
  }
  return sound;
}

template <PackKind kKind>
void Unpack(const PackedMatrix& packed, int row, float* out) {
  constexpr BlockTraits kTraits = BlockTraitsOf(kKind);
  const uint8_t* panel = packed.data + row / kPanelRows * packed.panel_bytes;
  const int lane = row % kPanelRows;
  for (int i = 0; i < packed.cols; ++i) {
    const uint8_t* unit = panel + int64_t{i} / kUnitCols * UnitBytes(kTraits);
    const int block = i / kQuantBlock % 2, factor = block * kPanelRows + lane;
    const int weight = BlockWeight(kTraits, unit, block, lane, i % kQuantBlock);
    out[i] = F32FromF16(FactorsOf(unit)[factor]) * static_cast<float>(weight);
    if (kTraits.has_min) out[i] += F32FromF16(MinimaOf(unit)[factor]);
  }
}

template <PackKind kKind>
constexpr PackFormat FormatNamed(const char* name) {
  return {
      .name = name,
      .unit = kQuantBlock,
      .strip = kStrip,
      .panel_bytes =
          [](DType, int cols) { return int64_t{NumUnits(cols)} * UnitBytes(BlockTraitsOf(kKind)); },
      .pack = PackPanel<kKind>,
      .check = CheckPanel<kKind>,
      .unpack_row = Unpack<kKind>,
  };
}

}  // namespace

constinit const PackFormat kQ4_0Format = FormatNamed<PackKind::kQ4_0>("Q4_0");
constinit const PackFormat kQ4_1Format = FormatNamed<PackKind::kQ4_1>("Q4_1");
constinit const PackFormat kQ5_0Format = FormatNamed<PackKind::kQ5_0>("Q5_0");
constinit const PackFormat kQ5_1Format = FormatNamed<PackKind::kQ5_1>("Q5_1");
constinit const PackFormat kIq4NlFormat = FormatNamed<PackKind::kIq4Nl>("IQ4_NL");

}  // namespace hearth
