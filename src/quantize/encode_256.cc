// SPDX-License-Identifier: Apache-2.0
// Formats whose blocks hold 256 values in groups, each group with a scale of a few bits.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "base/num.h"
#include "quantize/block_encoders.h"
#include "quantize/fit.h"

namespace hearth {
namespace {

constexpr int kValues = 256;

// Q4_K and Q5_K: eight groups of 32, value = d * scale * code - dmin * min.
struct Groups {
  static constexpr int kCount = 8, kSize = 32, kMost = 63;
  std::array<int, kCount> scales{}, mins{};
  std::array<uint8_t, kValues> codes{};
};

// Whole steps of `unit` that come nearest, as 6 bits can say.
int Steps(float value, float unit) {
  if (!(unit > 0)) return 0;
  return std::clamp(static_cast<int>(std::nearbyint(value / unit)), 0, Groups::kMost);
}

// The scale and the minimum were rounded: their neighbours may fit better together.
void Settle(std::span<const float> values, float d, float dmin, int high, int group, Groups& out) {
  std::array<uint8_t, Groups::kSize> tried{};
  const auto at = static_cast<size_t>(group);
  const int scale = out.scales[at], min = out.mins[at];
  double least = INFINITY;
  for (int s = std::max(0, scale - 1); s <= std::min(Groups::kMost, scale + 1); ++s) {
    for (int m = std::max(0, min - 1); m <= std::min(Groups::kMost, min + 1); ++m) {
      const double error = RoundTo(values, d * static_cast<float>(s), -dmin * static_cast<float>(m),
                                   high, tried.data());
      if (!(error < least)) continue;
      least = error;
      out.scales[at] = s;
      out.mins[at] = m;
      std::copy_n(tried.begin(), values.size(), out.codes.begin() + group * Groups::kSize);
    }
  }
}

Groups FitGroups(const float* values, int high, uint8_t* factors) {
  Groups out;
  std::array<Affine, Groups::kCount> lines{};
  float largest = 0, lowest = 0;
  for (int group = 0; group < Groups::kCount; ++group) {
    const std::span<const float> own(values + group * Groups::kSize, Groups::kSize);
    Affine& line = lines[static_cast<size_t>(group)];
    line = FitAffine(own, high, false, true, out.codes.data() + group * Groups::kSize);
    largest = std::max(largest, line.factor);
    lowest = std::min(lowest, line.offset);
  }
  const float d = PutF16(largest / Groups::kMost, factors);
  const float dmin = PutF16(-lowest / Groups::kMost, factors + 2);
  for (int group = 0; group < Groups::kCount; ++group) {
    const auto at = static_cast<size_t>(group);
    out.scales[at] = Steps(lines[at].factor, d);
    out.mins[at] = Steps(-lines[at].offset, dmin);
    Settle({values + group * Groups::kSize, Groups::kSize}, d, dmin, high, group, out);
  }
  return out;
}

// Eight scales and eight minima of six bits in 12 bytes, as ScaleMinOf of tensor/ reads them.
void PutScales(const Groups& groups, uint8_t* packed) {
  std::memset(packed, 0, 12);
  for (int group = 0; group < Groups::kCount; ++group) {
    const auto at = static_cast<size_t>(group);
    const int scale = groups.scales[at], min = groups.mins[at];
    if (group < 4) {
      packed[group] = static_cast<uint8_t>(packed[group] | scale);
      packed[group + 4] = static_cast<uint8_t>(packed[group + 4] | min);
    } else {
      packed[group + 4] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
      packed[group - 4] = static_cast<uint8_t>(packed[group - 4] | (scale >> 4) << 6);
      packed[group] = static_cast<uint8_t>(packed[group] | (min >> 4) << 6);
    }
  }
}

// Two groups share 32 bytes.
void PutNibbles(const Groups& groups, uint8_t* nibbles) {
  for (int pair = 0; pair < Groups::kCount / 2; ++pair) {
    for (int j = 0; j < Groups::kSize; ++j) {
      const auto first = static_cast<size_t>(pair * 64 + j);
      nibbles[pair * 32 + j] =
          static_cast<uint8_t>((groups.codes[first] & 15) | (groups.codes[first + 32] & 15) << 4);
    }
  }
}

}  // namespace

void EncodeQ4K(const float* values, uint8_t* block) {
  const Groups groups = FitGroups(values, 15, block);
  PutScales(groups, block + 4);
  PutNibbles(groups, block + 16);
}

void EncodeQ5K(const float* values, uint8_t* block) {
  const Groups groups = FitGroups(values, 31, block);
  PutScales(groups, block + 4);
  uint8_t* fifth = block + 16;
  std::memset(fifth, 0, 32);
  for (size_t i = 0; i < kValues; ++i) {
    fifth[i % 32] = static_cast<uint8_t>(fifth[i % 32] | (groups.codes[i] >> 4) << (i / 32));
  }
  PutNibbles(groups, block + 48);
}

// Sixteen groups of 16, value = d * scale * (code - 32), scales of eight bits.
void EncodeQ6K(const float* values, uint8_t* block) {
  constexpr int kGroups = 16, kSize = 16, kLow = -32, kHigh = 31;
  std::array<int8_t, kValues> codes{};
  std::array<float, kGroups> factors{};
  float largest = 0;
  for (int group = 0; group < kGroups; ++group) {
    const Line line =
        FitLine({values + group * kSize, kSize}, kLow, kHigh, false, codes.data() + group * kSize);
    factors[static_cast<size_t>(group)] = line.factor;
    if (std::fabs(line.factor) > std::fabs(largest)) largest = line.factor;
  }
  uint8_t *low = block, *high = block + 128, *scales = block + 192;
  std::memset(block, 0, 192);
  const float d = PutF16(largest / 127, block + 208);
  for (int group = 0; group < kGroups; ++group) {
    const float steps = d != 0 ? factors[static_cast<size_t>(group)] / d : 0;
    const int scale = std::clamp(static_cast<int>(std::nearbyint(steps)), -127, 127);
    scales[group] = static_cast<uint8_t>(static_cast<int8_t>(scale));
    RoundTo({values + group * kSize, kSize}, d * static_cast<float>(scale), kLow, kHigh,
            codes.data() + group * kSize);
  }
  for (int i = 0; i < kValues; ++i) {
    const int code = codes[static_cast<size_t>(i)] - kLow, half = i / 128, in_half = i % 128;
    uint8_t& four = low[half * 64 + in_half % 64];
    uint8_t& two = high[half * 32 + in_half % 32];
    four = static_cast<uint8_t>(four | (code & 15) << (in_half / 64 * 4));
    two = static_cast<uint8_t>(two | (code >> 4) << (in_half / 32 * 2));
  }
}

}  // namespace hearth
