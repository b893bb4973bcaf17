// SPDX-License-Identifier: Apache-2.0
// One function per block format, each encoding exactly one block; the twins of
// tensor/block_decoders.h. Internal to quantize/.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/num.h"
namespace hearth {

// Writes the factor, and returns what readers will take it for.
inline float PutF16(float value, uint8_t* at) {
  const uint16_t bits = F16FromF32(value);
  std::memcpy(at, &bits, sizeof(bits));
  return F32FromF16(bits);
}

// 32 values per block.
void EncodeQ4_0(const float* values, uint8_t* block);
void EncodeQ4_1(const float* values, uint8_t* block);
void EncodeQ5_0(const float* values, uint8_t* block);
void EncodeQ5_1(const float* values, uint8_t* block);
void EncodeQ8_0(const float* values, uint8_t* block);
void EncodeMxfp4(const float* values, uint8_t* block);

// 256 values per block.
void EncodeQ4K(const float* values, uint8_t* block);
void EncodeQ5K(const float* values, uint8_t* block);
void EncodeQ6K(const float* values, uint8_t* block);

}  // namespace hearth
