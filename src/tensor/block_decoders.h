// SPDX-License-Identifier: Apache-2.0
// One function per block format, each decoding exactly one block. Internal to tensor/: everybody
// else goes through quant.h.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/num.h"
namespace hearth {

// The formats are little endian, and so is every CPU Hearth runs on.
static_assert(std::endian::native == std::endian::little);
inline uint16_t LoadU16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline uint32_t LoadU32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline float LoadF16(const uint8_t* p) { return F32FromF16(LoadU16(p)); }

// 32 values per block.
void DecodeQ4_0(const uint8_t* block, float* out);
void DecodeQ4_1(const uint8_t* block, float* out);
void DecodeQ5_0(const uint8_t* block, float* out);
void DecodeQ5_1(const uint8_t* block, float* out);
void DecodeQ8_0(const uint8_t* block, float* out);
void DecodeIq4Nl(const uint8_t* block, float* out);
void DecodeMxfp4(const uint8_t* block, float* out);
void DecodeMxfp4Plane(const uint8_t* nibbles, uint8_t scale, float* out);

// 256 values per block.
void DecodeQ2K(const uint8_t* block, float* out);
void DecodeQ3K(const uint8_t* block, float* out);
void DecodeQ4K(const uint8_t* block, float* out);
void DecodeQ5K(const uint8_t* block, float* out);
void DecodeQ6K(const uint8_t* block, float* out);
void DecodeIq4Xs(const uint8_t* block, float* out);
void DecodeIq2Xxs(const uint8_t* block, float* out);

}  // namespace hearth
