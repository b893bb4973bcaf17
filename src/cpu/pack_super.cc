// SPDX-License-Identifier: Apache-2.0
// K-quants and IQ4_XS to panels: a row's superblock is taken apart into codes and scales, which
// then go to their places, four codes at a time.
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/num.h"
#include "cpu/pack_format.h"
#include "cpu/pack_lines.h"
#include "cpu/panels.h"
#include "cpu/panels_super.h"

namespace hearth {
namespace {

// One superblock of one row.
struct Super {
  uint8_t codes[kSuper];
  uint8_t scale[16], min[16];  // as in the file: scale is an int8_t where the format has signs
  uint16_t d, dmin;
};

uint16_t LoadU16(const uint8_t* at) {
  uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Twelve bytes hold eight 6-bit scales and minima (tensor/quant_256.cc says how).
void ReadSixBits(const uint8_t* packed, Super& out) {
  for (int i = 0; i < 4; ++i) {
    out.scale[i] = packed[i] & 63;
    out.min[i] = packed[i + 4] & 63;
    out.scale[i + 4] = static_cast<uint8_t>((packed[i + 8] & 15) | (packed[i] >> 6) << 4);
    out.min[i + 4] = static_cast<uint8_t>((packed[i + 8] >> 4) | (packed[i + 4] >> 6) << 4);
  }
}

// 32 bytes carry 64 values, the low nibbles first.
void ReadNibbles(const uint8_t* nibbles, uint8_t* codes) {
  for (int i = 0; i < kSuper; i += 64) {
    for (int j = 0; j < 32; ++j) {
      const int byte = nibbles[i / 2 + j];
      codes[i + j] = static_cast<uint8_t>(byte & 15);
      codes[i + j + 32] = static_cast<uint8_t>(byte >> 4);
    }
  }
}

// 32 bytes carry 128 values: four layers of bit pairs.
void ReadPairs(const uint8_t* pairs, uint8_t* codes) {
  for (int i = 0; i < kSuper; i += 32) {
    for (int j = 0; j < 32; ++j) {
      codes[i + j] = static_cast<uint8_t>(pairs[i / 128 * 32 + j] >> (i / 32 % 4 * 2) & 3);
    }
  }
}

// 32 bytes carry one more bit of each value, 32 values to a layer.
void AddHighBits(const uint8_t* bits, int at, uint8_t* codes) {
  for (int layer = 0; layer < 8; ++layer) {
    for (int j = 0; j < 32; ++j) {
      codes[layer * 32 + j] |= static_cast<uint8_t>((bits[j] >> layer & 1) << at);
    }
  }
}

void ReadQ2K(const uint8_t* block, Super& out) {
  const uint8_t* pairs = block + 16;
  out.d = LoadU16(block + 80);
  out.dmin = LoadU16(block + 82);
  for (int i = 0; i < 16; ++i) {
    out.scale[i] = block[i] & 15;
    out.min[i] = block[i] >> 4;
  }
  ReadPairs(pairs, out.codes);
}

void ReadQ3K(const uint8_t* block, Super& out) {
  const uint8_t *high = block, *pairs = block + 32, *scales = block + 96;
  out.d = LoadU16(block + 108);
  for (int i = 0; i < 16; ++i) {
    const int low = (scales[i % 8] >> (i < 8 ? 0 : 4)) & 15;
    const int top = (scales[8 + i % 4] >> (2 * (i / 4))) & 3;
    out.scale[i] = static_cast<uint8_t>((low | top << 4) - 32);
  }
  ReadPairs(pairs, out.codes);
  AddHighBits(high, 2, out.codes);
}

void ReadQ4K(const uint8_t* block, Super& out) {
  out.d = LoadU16(block);
  out.dmin = LoadU16(block + 2);
  ReadSixBits(block + 4, out);
  ReadNibbles(block + 16, out.codes);
}

void ReadQ5K(const uint8_t* block, Super& out) {
  const uint8_t *fifth = block + 16, *nibbles = block + 48;
  out.d = LoadU16(block);
  out.dmin = LoadU16(block + 2);
  ReadSixBits(block + 4, out);
  ReadNibbles(nibbles, out.codes);
  AddHighBits(fifth, 4, out.codes);
}

void ReadQ6K(const uint8_t* block, Super& out) {
  const uint8_t *low = block, *high = block + 128;
  out.d = LoadU16(block + 208);
  std::memcpy(out.scale, block + 192, 16);
  for (int half = 0; half < 2; ++half) {
    uint8_t* codes = out.codes + half * 128;
    for (int j = 0; j < 32; ++j) {
      const int first = low[half * 64 + j], second = low[half * 64 + 32 + j];
      const int two = high[half * 32 + j];
      codes[j] = static_cast<uint8_t>((first & 15) | (two & 3) << 4);
      codes[j + 32] = static_cast<uint8_t>((second & 15) | (two >> 2 & 3) << 4);
      codes[j + 64] = static_cast<uint8_t>(first >> 4 | (two >> 4 & 3) << 4);
      codes[j + 96] = static_cast<uint8_t>(second >> 4 | (two >> 6) << 4);
    }
  }
}

void ReadIq4Xs(const uint8_t* block, Super& out) {
  const uint16_t high = LoadU16(block + 2);
  out.d = LoadU16(block);
  for (int i = 0; i < 8; ++i) {
    const int low = (block[4 + i / 2] >> (i % 2 * 4)) & 15;
    out.scale[i] = static_cast<uint8_t>((low | (high >> (2 * i) & 3) << 4) - 32);
  }
  for (int i = 0; i < kSuper; i += 32) {
    for (int j = 0; j < 16; ++j) {
      const int byte = block[8 + i / 2 + j];
      out.codes[i + j] = static_cast<uint8_t>(byte & 15);
      out.codes[i + j + 16] = static_cast<uint8_t>(byte >> 4);
    }
  }
}

template <PackKind kKind>
void WriteScales(const Super& from, int lane, uint8_t* unit) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  uint8_t* scales = unit + kLayout.scales_at;
  if constexpr (kKind == PackKind::kQ4K || kKind == PackKind::kQ5K) {
    uint32_t pair[4];
    for (int p = 0; p < 4; ++p) {
      pair[p] = uint32_t{from.scale[2 * p]} | uint32_t{from.scale[2 * p + 1]} << 6 |
                uint32_t{from.min[2 * p]} << 12 | uint32_t{from.min[2 * p + 1]} << 18;
    }
    for (int i = 0; i < 3; ++i) {
      const uint32_t word = pair[i] | (pair[3] >> (8 * i) & 255) << 24;
      std::memcpy(scales + i * 64 + lane * 4, &word, 4);
    }
  } else {
    for (int sub = 0; sub < kSuper / kLayout.sub_cols; ++sub) {
      const int min = kLayout.has_min ? from.min[sub] << 4 : 0;
      scales[sub * kPanelRows + lane] = static_cast<uint8_t>(from.scale[sub] | min);
    }
  }
}

// Four codes of one row to the words of their lines.
template <PackKind kKind, int kQuad>
void WriteQuad(const uint8_t* codes, uint32_t* words) {
  constexpr QuadPlace kPlace = PlaceOf(kKind, kQuad);
  uint32_t four;
  std::memcpy(&four, codes + kQuad * 4, 4);
  for (const CodeBits& part : kPlace.part) {
    const uint32_t mask = 0x01010101u * ((1u << part.bits) - 1);
    words[part.line] |= (four >> part.from & mask) << part.shift;
  }
}

template <PackKind kKind, size_t... kQuads>
void WriteCodes(const Super& from, int lane, uint8_t* unit, std::index_sequence<kQuads...>) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  for (int group = 0; group < 4; ++group) {
    uint32_t words[kLayout.group_bytes / 64] = {};  // of this row, one a line
    (WriteQuad<kKind, static_cast<int>(kQuads)>(from.codes + group * 64, words), ...);
    uint8_t* at = unit + kLayout.codes_at + group * kLayout.group_bytes + lane * 4;
    for (const uint32_t word : words) {
      std::memcpy(at, &word, 4);
      at += 64;
    }
  }
}

template <PackKind kKind, void (*kRead)(const uint8_t* block, Super& out)>
bool Pack(const MatView& matrix, int first_row, int count, uint8_t* panel,
          std::vector<SpilledBlock>&) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  const int units = matrix.cols / kSuper, block_bytes = BlockShapeOf(matrix.dtype).bytes;
  // Rows that are not there have factors of zero.
  if (count < kPanelRows) std::memset(panel, 0, static_cast<size_t>(units) * kLayout.unit_bytes);
  Super super{};
  bool plausible = true;
  for (int n = 0; n < units; ++n) {
    uint8_t* unit = panel + int64_t{n} * kLayout.unit_bytes;
    if (!kLayout.has_min) std::memset(unit + 32, 0, 32);
    for (int lane = 0; lane < count; ++lane) {
      const std::byte* row = matrix.data + (first_row + lane) * matrix.row_bytes;
      kRead(reinterpret_cast<const uint8_t*>(row) + int64_t{n} * block_bytes, super);
      std::memcpy(unit + lane * 2, &super.d, 2);
      if (kLayout.has_min) std::memcpy(unit + 32 + lane * 2, &super.dmin, 2);
      WriteScales<kKind>(super, lane, unit);
      WriteCodes<kKind>(super, lane, unit, std::make_index_sequence<16>());
    }
    plausible &= FiniteF16s(SuperFactors(unit), 2 * kPanelRows);
  }
  return plausible;
}

template <PackKind kKind>
bool Check(const PackedMatrix& packed, const uint8_t* panel) {
  bool sound = true;
  for (int n = 0; n < packed.cols / kSuper; ++n) {
    sound &= FiniteF16s(SuperFactors(panel + int64_t{n} * SuperLayoutOf(kKind).unit_bytes),
                        2 * kPanelRows);
  }
  return sound;
}

template <PackKind kKind>
void Unpack(const PackedMatrix& packed, int row, float* out) {
  constexpr SuperLayout kLayout = SuperLayoutOf(kKind);
  const uint8_t* panel = packed.data + row / kPanelRows * packed.panel_bytes;
  const int lane = row % kPanelRows;
  for (int i = 0; i < packed.cols; ++i) {
    const uint8_t* unit = panel + int64_t{i / kSuper} * kLayout.unit_bytes;
    const auto [scale, min] = SubScaleOf(kKind, unit, lane, i % kSuper / kLayout.sub_cols);
    const int value = SuperValue(kKind, SuperCode(kKind, unit, lane, i % kSuper));
    out[i] = F32FromF16(SuperFactors(unit)[lane]) * static_cast<float>(scale) *
             static_cast<float>(value);
    if constexpr (kLayout.has_min) {
      out[i] -= F32FromF16(SuperFactors(unit)[kPanelRows + lane]) * static_cast<float>(min);
    }
  }
}

template <PackKind kKind, void (*kRead)(const uint8_t* block, Super& out)>
constexpr PackFormat Row(const char* name) {
  return {
      .name = name,
      .unit = kSuper,
      .strip = kSuper,
      .panel_bytes =
          [](DType, int cols) { return int64_t{cols} / kSuper * SuperLayoutOf(kKind).unit_bytes; },
      .pack = Pack<kKind, kRead>,
      .check = Check<kKind>,
      .unpack_row = Unpack<kKind>,
  };
}

}  // namespace

const PackFormat kQ2KFormat = Row<PackKind::kQ2K, ReadQ2K>("Q2_K");
const PackFormat kQ3KFormat = Row<PackKind::kQ3K, ReadQ3K>("Q3_K");
const PackFormat kQ4KFormat = Row<PackKind::kQ4K, ReadQ4K>("Q4_K");
const PackFormat kQ5KFormat = Row<PackKind::kQ5K, ReadQ5K>("Q5_K");
const PackFormat kQ6KFormat = Row<PackKind::kQ6K, ReadQ6K>("Q6_K");
const PackFormat kIq4XsFormat = Row<PackKind::kIq4Xs, ReadIq4Xs>("IQ4_XS");

}  // namespace hearth
