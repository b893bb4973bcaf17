// SPDX-License-Identifier: Apache-2.0
// F32, F16 and BF16 to panels: a line or two of each row in turn, so that a panel is one stream.
#include <bit>
#include <cstring>

#include "base/num.h"
#include "cpu/pack_format.h"
#include "cpu/pack_lines.h"
#include "cpu/panels.h"

namespace hearth {
namespace {

// What the three differ in. `Move` lays out 32 neighbouring columns and adds to `suspects` what is
// a NaN or an infinity.
struct F32 {
  static constexpr int kBytes = 4;
  static constexpr uint32_t kExponent = 0x7f800000;
  using Bits = uint32_t;
  static void Move(const uint8_t* from, uint8_t* to, __m128i& suspects) {
    const __m128i exponent = _mm_set1_epi32(static_cast<int>(kExponent));
    for (int i = 0; i < 128; i += 16) {
      const __m128i values = LoadLine(from + i);
      suspects = _mm_or_si128(suspects, _mm_cmpeq_epi32(_mm_and_si128(values, exponent), exponent));
      StoreLine(to + i, values);
    }
  }
  static int64_t Place(int lane, int column) { return FloatPlace(lane, column); }
  static float Value(Bits bits) { return std::bit_cast<float>(bits); }
};

__m128i Suspects16(__m128i values, uint16_t exponent_bits) {
  const __m128i exponent = _mm_set1_epi16(static_cast<int16_t>(exponent_bits));
  return _mm_cmpeq_epi16(_mm_and_si128(values, exponent), exponent);
}

struct F16 {
  static constexpr int kBytes = 2;
  static constexpr uint16_t kExponent = kF16Exponent;
  using Bits = uint16_t;
  static void Move(const uint8_t* from, uint8_t* to, __m128i& suspects) {
    for (int i = 0; i < 64; i += 16) {
      const __m128i values = LoadLine(from + i);
      suspects = _mm_or_si128(suspects, Suspects16(values, kExponent));
      StoreLine(to + i, values);
    }
  }
  static int64_t Place(int lane, int column) { return FloatPlace(lane, column); }
  static float Value(Bits bits) { return F32FromF16(bits); }
};

struct Bf16 {
  static constexpr int kBytes = 2;
  static constexpr uint16_t kExponent = 0x7f80;
  using Bits = uint16_t;
  static void Move(const uint8_t* from, uint8_t* to, __m128i& suspects) {
    for (int i = 0; i < 32; i += 16) {
      const __m128i first = LoadLine(from + i), second = LoadLine(from + 32 + i);
      suspects = _mm_or_si128(
          suspects, _mm_or_si128(Suspects16(first, kExponent), Suspects16(second, kExponent)));
      StoreLine(to + 2 * i, _mm_unpacklo_epi16(first, second));
      StoreLine(to + 2 * i + 16, _mm_unpackhi_epi16(first, second));
    }
  }
  static int64_t Place(int lane, int column) { return Bf16Place(lane, column); }
  static float Value(Bits bits) { return F32FromBf16(bits); }
};

template <class Format>
bool PackPanel(const MatView& matrix, int first_row, int count, uint8_t* panel,
               std::vector<SpilledBlock>&) {
  constexpr int kBlockBytes = kQuantBlock * Format::kBytes;
  const bool neighbours = matrix.col_bytes == Format::kBytes;
  __m128i suspects = _mm_setzero_si128();
  for (int b = 0; b < matrix.cols / kQuantBlock; ++b) {
    for (int lane = 0; lane < kPanelRows; ++lane, panel += kBlockBytes) {
      if (lane >= count) {
        std::memset(panel, 0, kBlockBytes);
        continue;
      }
      const auto* from = reinterpret_cast<const uint8_t*>(
          matrix.data + (first_row + lane) * matrix.row_bytes + b * kQuantBlock * matrix.col_bytes);
      if (neighbours) {
        Format::Move(from, panel, suspects);
        continue;
      }
      uint8_t gathered[kBlockBytes];
      for (int i = 0; i < kQuantBlock; ++i) {
        std::memcpy(gathered + i * Format::kBytes, from + i * matrix.col_bytes, Format::kBytes);
      }
      Format::Move(gathered, panel, suspects);
    }
  }
  return _mm_movemask_epi8(suspects) == 0;
}

// Without a branch, so that the compiler can use whole vectors.
template <class Format>
bool CheckPanel(const PackedMatrix& packed, const uint8_t* panel) {
  using Bits = typename Format::Bits;
  constexpr Bits kLowest = Format::kExponent & -Format::kExponent;
  const auto* values = reinterpret_cast<const Bits*>(panel);
  Bits suspects = 0;
  for (int64_t i = 0; i < int64_t{packed.cols} * kPanelRows; ++i) {
    // Carries into the sign when all exponent bits are set.
    suspects |= static_cast<Bits>((values[i] & Format::kExponent) + kLowest);
  }
  return suspects >> (8 * sizeof(Bits) - 1) == 0;
}

template <class Format>
void Unpack(const PackedMatrix& packed, int row, float* out) {
  const uint8_t* panel = packed.data + row / kPanelRows * packed.panel_bytes;
  const auto* values = reinterpret_cast<const typename Format::Bits*>(panel);
  for (int i = 0; i < packed.cols; ++i) {
    out[i] = Format::Value(values[Format::Place(row % kPanelRows, i)]);
  }
}

template <class Format>
constexpr PackFormat RowOf(const char* name) {
  return {
      .name = name,
      .unit = kQuantBlock,
      .strip = 0,
      .panel_bytes = [](DType, int cols) { return FloatPanelBytes(cols, Format::kBytes); },
      .pack = PackPanel<Format>,
      .check = CheckPanel<Format>,
      .unpack_row = Unpack<Format>,
  };
}

}  // namespace

const PackFormat kF32Format = RowOf<F32>("F32");
const PackFormat kF16Format = RowOf<F16>("F16");
const PackFormat kBf16Format = RowOf<Bf16>("BF16");

}  // namespace hearth
