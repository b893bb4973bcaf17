// SPDX-License-Identifier: Apache-2.0
// Formats whose blocks hold 32 values. Except in MXFP4's planes, byte j carries value j in its low
// nibble and value j + 16 in its high one.
#include "tensor/block_decoders.h"
#include "tensor/iq_tables.h"

namespace hearth {
namespace {

constexpr int kHalf = 16;

// The fifth bits of the values of a Q5 block stand together, bit j for value j.
int FiveBits(const uint8_t* nibbles, uint32_t fifth, int j) {
  const int nibble = j < kHalf ? nibbles[j] & 15 : nibbles[j - kHalf] >> 4;
  return nibble | static_cast<int>((fifth >> j) & 1u) << 4;
}

// Half the block's scale, to go with doubled values: the doubled values are integers, and 2^-128
// is still exact as a subnormal. 255 is NaN by the OCP standard; loaders refuse it.
float HalfScale(uint8_t scale) {
  if (scale == kE8m0Nan) return F32FromE8m0(scale);
  return scale < 2 ? std::bit_cast<float>(0x00200000u << scale)
                   : F32FromE8m0(static_cast<uint8_t>(scale - 1));
}

// E2M1 doubled. Code 8 is -0 in the standard, +0 here as in every GGUF reader: no sum can tell.
constexpr float kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace

void DecodeQ4_0(const uint8_t* block, float* out) {
  const float d = LoadF16(block);
  const uint8_t* nibbles = block + 2;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>((nibbles[j] & 15) - 8);
    out[j + kHalf] = d * static_cast<float>((nibbles[j] >> 4) - 8);
  }
}

void DecodeQ4_1(const uint8_t* block, float* out) {
  const float d = LoadF16(block), m = LoadF16(block + 2);
  const uint8_t* nibbles = block + 4;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>(nibbles[j] & 15) + m;
    out[j + kHalf] = d * static_cast<float>(nibbles[j] >> 4) + m;
  }
}

void DecodeQ5_0(const uint8_t* block, float* out) {
  const float d = LoadF16(block);
  const uint32_t fifth = LoadU32(block + 2);
  for (int j = 0; j < 2 * kHalf; ++j) {
    out[j] = d * static_cast<float>(FiveBits(block + 6, fifth, j) - 16);
  }
}

void DecodeQ5_1(const uint8_t* block, float* out) {
  const float d = LoadF16(block), m = LoadF16(block + 2);
  const uint32_t fifth = LoadU32(block + 4);
  for (int j = 0; j < 2 * kHalf; ++j) {
    out[j] = d * static_cast<float>(FiveBits(block + 8, fifth, j)) + m;
  }
}

void DecodeQ8_0(const uint8_t* block, float* out) {
  const float d = LoadF16(block);
  for (int j = 0; j < 2 * kHalf; ++j) {
    out[j] = static_cast<float>(static_cast<int8_t>(block[2 + j])) * d;
  }
}

void DecodeIq4Nl(const uint8_t* block, float* out) {
  const float d = LoadF16(block);
  const uint8_t* nibbles = block + 2;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = d * static_cast<float>(kIq4Values[nibbles[j] & 15]);
    out[j + kHalf] = d * static_cast<float>(kIq4Values[nibbles[j] >> 4]);
  }
}

void DecodeMxfp4(const uint8_t* block, float* out) {
  const float half = HalfScale(block[0]);
  const uint8_t* nibbles = block + 1;
  for (int j = 0; j < kHalf; ++j) {
    out[j] = half * kDoubled[nibbles[j] & 15];
    out[j + kHalf] = half * kDoubled[nibbles[j] >> 4];
  }
}

void DecodeMxfp4Plane(const uint8_t* nibbles, uint8_t scale, float* out) {
  const float half = HalfScale(scale);
  for (int j = 0; j < kHalf; ++j) {
    out[2 * j] = half * kDoubled[nibbles[j] & 15];
    out[2 * j + 1] = half * kDoubled[nibbles[j] >> 4];
  }
}

}  // namespace hearth
