// SPDX-License-Identifier: Apache-2.0
#include "quantize/encode.h"

#include <cstring>

#include "base/check.h"
#include "base/num.h"
#include "quantize/block_encoders.h"

namespace hearth {
namespace {

using BlockEncoder = void (*)(const float* values, uint8_t* block);

BlockEncoder EncoderOf(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return EncodeQ4_0;
    case DType::kQ4_1:
      return EncodeQ4_1;
    case DType::kQ5_0:
      return EncodeQ5_0;
    case DType::kQ5_1:
      return EncodeQ5_1;
    case DType::kQ8_0:
      return EncodeQ8_0;
    case DType::kMxfp4:
      return EncodeMxfp4;
    case DType::kQ4_K:
      return EncodeQ4K;
    case DType::kQ5_K:
      return EncodeQ5K;
    case DType::kQ6_K:
      return EncodeQ6K;
    default:
      return nullptr;
  }
}

bool IsPlain(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBf16;
}

}  // namespace

bool CanEncode(DType dtype) { return IsPlain(dtype) || EncoderOf(dtype) != nullptr; }

void EncodeBlocks(DType dtype, const float* values, int64_t count, std::byte* out) {
  HEARTH_CHECK(CanEncode(dtype));
  if (dtype == DType::kF32) {
    std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  if (IsPlain(dtype)) {
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t bits = dtype == DType::kF16 ? F16FromF32(values[i]) : Bf16FromF32(values[i]);
      std::memcpy(out + i * 2, &bits, sizeof(bits));
    }
    return;
  }
  const BlockShape shape = BlockShapeOf(dtype);
  const BlockEncoder encode = EncoderOf(dtype);
  auto* block = reinterpret_cast<uint8_t*>(out);
  for (int64_t i = 0; i < count; i += shape.elems, block += shape.bytes) encode(values + i, block);
}

}  // namespace hearth
