// SPDX-License-Identifier: Apache-2.0
// The searches behind the encoders: factors and integers whose products lie nearest to given
// values. Internal to quantize/.
#pragma once
#include <cstdint>
#include <span>
namespace hearth {

// value ~ factor * code, codes in [low, high].
struct Line {
  float factor = 0;
  double error = 0;  // sum of squares
};
// Codes of the values for a given factor, and what is left.
double RoundTo(std::span<const float> values, float factor, int low, int high, int8_t* codes);
// The best factor that was found. `as_f16` holds factors to what 16 bits can say.
Line FitLine(std::span<const float> values, int low, int high, bool as_f16, int8_t* codes);

// value ~ factor * code + offset, codes in [0, high].
struct Affine {
  float factor = 0, offset = 0;
  double error = 0;
};
double RoundTo(std::span<const float> values, float factor, float offset, int high, uint8_t* codes);
// `offset_to_zero`: the offset may not be positive, as K-quants store its size alone.
Affine FitAffine(std::span<const float> values, int high, bool as_f16, bool offset_to_zero,
                 uint8_t* codes);

}  // namespace hearth
