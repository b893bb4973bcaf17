// SPDX-License-Identifier: Apache-2.0
#include "sampling/random_draw.h"

#include "base/mix.h"

namespace hearth {
double UniformDraw(const DrawPlace& place) {
  const uint64_t lane =
      (uint64_t{place.choice} << 32) | static_cast<uint64_t>(static_cast<uint32_t>(place.stream));
  // Each line is one to one in what it adds, so two places share a key only by accident of 64 bits.
  uint64_t key = MixBits(place.seed + kGoldenRatio);
  if (lane != 0) key = MixBits(key ^ MixBits(lane));
  const uint64_t bits = MixBits(key + place.step * kGoldenRatio);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace hearth
