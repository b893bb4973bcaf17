// SPDX-License-Identifier: Apache-2.0
// Formats whose blocks hold 256 values in groups of 16 or 32, each group with a scale of a few
// bits, and one or two f16 factors over all of them.
#include "tensor/block_decoders.h"
#include "tensor/iq_tables.h"

namespace hearth {
namespace {

// Q4_K and Q5_K: eight 6-bit scales and eight 6-bit minima in 12 bytes. The first four of each
// fill the low 6 bits of bytes 0-3 and 4-7; of the last four, the low nibbles share bytes 8-11 and
// the two high bits sit on top of bytes 0-7.
struct ScaleMin {
  int scale, min;
};
ScaleMin ScaleMinOf(const uint8_t* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4,
          (packed[group + 4] >> 4) | (packed[group] >> 6) << 4};
}

// Q3_K: sixteen 6-bit scales in 12 bytes, low nibbles in bytes 0-7, high bit pairs in bytes 8-11.
int Q3Scale(const uint8_t* packed, int group) {
  const int low = (packed[group % 8] >> (group < 8 ? 0 : 4)) & 15;
  const int high = (packed[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (low | high << 4) - 32;
}

}  // namespace

void DecodeQ2K(const uint8_t* block, float* out) {
  const uint8_t *scales = block, *pairs = block + 16;
  const float d = LoadF16(block + 80), dmin = LoadF16(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 16;
    const float dl = d * static_cast<float>(scales[group] & 15);
    const float ml = dmin * static_cast<float>(scales[group] >> 4);
    // 32 bytes carry 128 values: four layers of bit pairs, 32 values to a layer.
    const int q = (pairs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
    out[i] = dl * static_cast<float>(q) - ml;
  }
}

void DecodeQ3K(const uint8_t* block, float* out) {
  const uint8_t *high = block, *pairs = block + 32, *scales = block + 96;
  const float d = LoadF16(block + 108);
  for (int i = 0; i < 256; ++i) {
    const float dl = d * static_cast<float>(Q3Scale(scales, i / 16));
    const int low = (pairs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
    const bool has_high = ((high[i % 32] >> (i / 32)) & 1) != 0;
    out[i] = dl * static_cast<float>(low - (has_high ? 0 : 4));
  }
}

void DecodeQ4K(const uint8_t* block, float* out) {
  const float d = LoadF16(block), dmin = LoadF16(block + 2);
  const uint8_t* nibbles = block + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = ScaleMinOf(block + 4, group);
    const float dl = d * static_cast<float>(scale), ml = dmin * static_cast<float>(min);
    for (int j = 0; j < 32; ++j) {
      const int q = (nibbles[group / 2 * 32 + j] >> (group % 2 * 4)) & 15;
      out[group * 32 + j] = dl * static_cast<float>(q) - ml;
    }
  }
}

void DecodeQ5K(const uint8_t* block, float* out) {
  const float d = LoadF16(block), dmin = LoadF16(block + 2);
  const uint8_t *fifth = block + 16, *nibbles = block + 48;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = ScaleMinOf(block + 4, group);
    const float dl = d * static_cast<float>(scale), ml = dmin * static_cast<float>(min);
    for (int j = 0; j < 32; ++j) {
      const int low = (nibbles[group / 2 * 32 + j] >> (group % 2 * 4)) & 15;
      const int q = low | ((fifth[j] >> group) & 1) << 4;
      out[group * 32 + j] = dl * static_cast<float>(q) - ml;
    }
  }
}

void DecodeQ6K(const uint8_t* block, float* out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float d = LoadF16(block + 208);
  for (int i = 0; i < 256; ++i) {
    const float dl = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    // Each half of 128 values: low nibbles of 64 bytes, then their high nibbles; on top of them
    // four layers of bit pairs in 32 bytes.
    const int half = i / 128, in_half = i % 128;
    const int four = (low[half * 64 + in_half % 64] >> (in_half / 64 * 4)) & 15;
    const int two = (high[half * 32 + in_half % 32] >> (in_half / 32 * 2)) & 3;
    out[i] = dl * static_cast<float>((four | two << 4) - 32);
  }
}

void DecodeIq4Xs(const uint8_t* block, float* out) {
  const float d = LoadF16(block);
  const uint16_t scales_high = LoadU16(block + 2);
  const uint8_t *scales_low = block + 4, *nibbles = block + 8;
  for (int group = 0; group < 8; ++group) {
    const int low = (scales_low[group / 2] >> (group % 2 * 4)) & 15;
    const int high = (scales_high >> (2 * group)) & 3;
    const float dl = d * static_cast<float>((low | high << 4) - 32);
    for (int j = 0; j < 16; ++j) {
      const uint8_t byte = nibbles[group * 16 + j];
      out[group * 32 + j] = dl * static_cast<float>(kIq4Values[byte & 15]);
      out[group * 32 + j + 16] = dl * static_cast<float>(kIq4Values[byte >> 4]);
    }
  }
}

void DecodeIq2Xxs(const uint8_t* block, float* out) {
  const float d = LoadF16(block);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* index = block + 2 + group * 8;  // four of them, then signs and scale
    const uint32_t signs_scale = LoadU32(index + 4);
    const float dl = d * (0.5f + static_cast<float>(signs_scale >> 28)) * 0.25f;
    for (int j = 0; j < 32; ++j) {
      const uint32_t seven = (signs_scale >> (j / 8 * 7)) & 127u;
      // The eighth sign makes the number of minuses even.
      const uint32_t signs = seven | (std::popcount(seven) % 2 != 0 ? 128u : 0u);
      const float sign = ((signs >> (j % 8)) & 1u) != 0 ? -1.0f : 1.0f;
      const uint16_t codes = kIq2XxsGrid[index[j / 8]];
      const float magnitude = kIq2Magnitudes[(codes >> (j % 8 * 2)) & 3];
      out[group * 32 + j] = dl * magnitude * sign;
    }
  }
}

}  // namespace hearth
