// SPDX-License-Identifier: Apache-2.0
// The code books of the IQ formats. They are data of the formats and follow from no formula.
#pragma once
#include <cstdint>
namespace hearth {

// IQ4_NL and IQ4_XS: what the 16 nibbles stand for.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// IQ2_XXS: eight magnitudes per entry, two bits each, the first in the lowest bits; the two bits
// choose from kIq2Magnitudes. Code 3 does not occur.
extern const uint16_t kIq2XxsGrid[256];
inline constexpr float kIq2Magnitudes[4] = {8.0f, 25.0f, 43.0f, 0.0f};

}  // namespace hearth
