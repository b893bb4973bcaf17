// SPDX-License-Identifier: Apache-2.0
// Finds weights that are no numbers. It walks gigabytes at load, so each block is first screened
// by its scale alone; only a suspect is decoded.
#include <cmath>
#include <vector>

#include "tensor/block_decoders.h"
#include "tensor/block_format.h"
#include "tensor/quant.h"

namespace hearth {
namespace {

bool F16Suspect(const uint8_t* p) { return (LoadU16(p) & 0x7c00u) == 0x7c00u; }
// 255 is NaN. From 253 on the largest codes overflow a float: 6 * 2^126 is more than it holds.
bool E8m0Suspect(uint8_t scale) { return scale >= 253; }

// Where a block keeps its f16 factors; -1 where it has none.
struct Factors {
  int first, second;
};
Factors FactorsOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIq4Nl:
    case DType::kIq4Xs:
    case DType::kIq2Xxs:
      return {0, -1};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    default:
      return {-1, -1};
  }
}

// The first block in [0, count) that `suspect` and then `guilty` agree on, or -1. Groups of 512
// are screened without a branch, so the compiler can keep many loads in flight.
template <class Suspect, class Guilty>
int64_t FirstGuilty(int64_t count, Suspect suspect, Guilty guilty) {
  constexpr int64_t kGroup = 512;
  for (int64_t begin = 0; begin < count; begin += kGroup) {
    const int64_t end = begin + kGroup < count ? begin + kGroup : count;
    unsigned any = 0;
    for (int64_t i = begin; i < end; ++i) any |= suspect(i) ? 1u : 0u;
    if (any == 0) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (suspect(i) && guilty(i)) return i;
    }
  }
  return -1;
}

bool AllFinite(const float* values, int count) {
  for (int i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return false;
  }
  return true;
}

Status Refuse(DType dtype, int64_t block) {
  if (block < 0) return Status();
  const char* unit = BlockShapeOf(dtype).elems == 1 ? "value" : "block";
  return Error(Code::kCorrupt, "%s %s %lld holds a NaN or an infinity", NameOf(dtype), unit,
               static_cast<long long>(block));
}

Status RefuseMxfp4(DType dtype, int64_t block, uint8_t scale) {
  return Error(Code::kCorrupt, "%s block %lld has the scale byte %d, which makes it %s",
               NameOf(dtype), static_cast<long long>(block), int{scale},
               scale == kE8m0Nan ? "NaN" : "infinite");
}

Status CheckMxfp4(const uint8_t* data, int64_t count) {
  const int64_t block = FirstGuilty(
      count, [&](int64_t i) { return E8m0Suspect(data[i * 17]); },
      [&](int64_t i) {
        float values[32];
        DecodeMxfp4(data + i * 17, values);
        return !AllFinite(values, 32);
      });
  if (block < 0) return Status();
  return RefuseMxfp4(DType::kMxfp4, block, data[block * 17]);
}

// What nobody here knows the factors of.
Status CheckByDecoding(DType dtype, std::span<const std::byte> bytes) {
  const BlockShape shape = BlockShapeOf(dtype);
  std::vector<float> values(static_cast<size_t>(shape.elems));
  const auto count = static_cast<int64_t>(bytes.size()) / shape.bytes;
  for (int64_t i = 0; i < count; ++i) {
    DecodeBlocks(dtype, bytes.data() + i * shape.bytes, shape.elems, values.data());
    if (!AllFinite(values.data(), shape.elems)) return Refuse(dtype, i);
  }
  return Status();
}

}  // namespace

Status CheckBlocks(DType dtype, std::span<const std::byte> bytes) {
  HEARTH_CHECK(dtype != DType::kMxfp4Planes);  // its scales lie elsewhere: CheckPlanes
  if (!CanDecode(dtype)) return Status();
  const BlockShape shape = BlockShapeOf(dtype);
  HEARTH_CHECK(bytes.size() % static_cast<size_t>(shape.bytes) == 0);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto count = static_cast<int64_t>(bytes.size()) / shape.bytes;
  const auto always = [](int64_t) { return true; };
  if (dtype == DType::kMxfp4) return CheckMxfp4(data, count);
  if (dtype == DType::kF32) {
    const auto suspect = [&](int64_t i) { return (~LoadU32(data + i * 4) & 0x7f800000u) == 0; };
    return Refuse(dtype, FirstGuilty(count, suspect, always));
  }
  if (dtype == DType::kBf16) {
    const auto suspect = [&](int64_t i) { return (~LoadU16(data + i * 2) & 0x7f80u) == 0; };
    return Refuse(dtype, FirstGuilty(count, suspect, always));
  }
  if (AddedFormat(dtype) != nullptr) return CheckByDecoding(dtype, bytes);
  const Factors at = FactorsOf(dtype);
  HEARTH_CHECK(at.first >= 0);
  const int second = at.second < 0 ? at.first : at.second;
  const auto suspect = [&](int64_t i) {
    const uint8_t* block = data + i * shape.bytes;
    return F16Suspect(block + at.first) || F16Suspect(block + second);
  };
  // Not decoded: an infinite factor is no weight even where all its multipliers happen to be 0.
  return Refuse(dtype, FirstGuilty(count, suspect, always));
}

Status CheckPlanes(std::span<const std::byte> nibbles, std::span<const std::byte> scales) {
  HEARTH_CHECK(nibbles.size() == scales.size() * 16);
  const auto* codes = reinterpret_cast<const uint8_t*>(nibbles.data());
  const auto* scale = reinterpret_cast<const uint8_t*>(scales.data());
  const int64_t block = FirstGuilty(
      static_cast<int64_t>(scales.size()), [&](int64_t i) { return E8m0Suspect(scale[i]); },
      [&](int64_t i) {
        float values[32];
        DecodeMxfp4Plane(codes + i * 16, scale[i], values);
        return !AllFinite(values, 32);
      });
  if (block < 0) return Status();
  return RefuseMxfp4(DType::kMxfp4Planes, block, scale[block]);
}

}  // namespace hearth
