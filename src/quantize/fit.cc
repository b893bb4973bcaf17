// SPDX-License-Identifier: Apache-2.0
#include "quantize/fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/num.h"

namespace hearth {
namespace {

constexpr size_t kMaxValues = 32;
using Codes = std::array<float, kMaxValues>;  // whole numbers
// Shares of the range that codes span in the first tries: outliers may cost less than a coarse
// step.
constexpr float kShrink[] = {1.0f, 0.94f, 0.88f, 0.82f, 0.75f};

float Rounded(float value, bool as_f16) { return as_f16 ? F32FromF16(F16FromF32(value)) : value; }

// Division by zero, or to infinity, must not choose a code.
float InverseOf(float factor) { return factor != 0 && std::isfinite(1 / factor) ? 1 / factor : 0; }

// To the nearest whole number, ties to even, for sizes below 2^22: adding pushes the fraction out.
// A plain loop of it becomes vector instructions, which calls to nearbyint do not.
float Whole(float value) { return (value + 12582912.0f) - 12582912.0f; }

// Codes in [low, high] for value ~ factor * code + offset, and the sum of squares that is left.
double Round(std::span<const float> values, float factor, float offset, float low, float high,
             Codes& codes) {
  const float inverse = InverseOf(factor);
  std::array<float, kMaxValues> off;
  for (size_t i = 0; i < values.size(); ++i) {
    const float code = Whole(std::min(std::max((values[i] - offset) * inverse, low), high));
    codes[i] = code;
    off[i] = values[i] - (factor * code + offset);
  }
  std::array<double, 4> sums{};
  for (size_t i = 0; i < values.size(); ++i) {
    sums[i % 4] += static_cast<double>(off[i]) * off[i];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// What the line of least squares through (code, value) is made of.
struct Moments {
  double sum = 0, code_sum = 0, product = 0, square = 0;
  Moments(std::span<const float> values, const Codes& codes) {
    for (size_t i = 0; i < values.size(); ++i) {
      sum += values[i];
      code_sum += codes[i];
      product += static_cast<double>(values[i]) * codes[i];
      square += static_cast<double>(codes[i]) * codes[i];
    }
  }
};

template <class T>
void Keep(const Codes& codes, size_t count, T* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(codes[i]);
}

}  // namespace

double RoundTo(std::span<const float> values, float factor, int low, int high, int8_t* codes) {
  Codes found;
  const double error =
      Round(values, factor, 0, static_cast<float>(low), static_cast<float>(high), found);
  Keep(found, values.size(), codes);
  return error;
}

double RoundTo(std::span<const float> values, float factor, float offset, int high,
               uint8_t* codes) {
  Codes found;
  const double error = Round(values, factor, offset, 0, static_cast<float>(high), found);
  Keep(found, values.size(), codes);
  return error;
}

Line FitLine(std::span<const float> values, int low, int high, bool as_f16, int8_t* codes) {
  float extreme = 0;
  for (const float value : values) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  Codes tried, best_codes{};
  Line best{0, INFINITY};
  const auto consider = [&](float factor) {
    const double error =
        Round(values, factor, 0, static_cast<float>(low), static_cast<float>(high), tried);
    if (!(error < best.error)) return;
    best = {factor, error};
    best_codes = tried;
  };
  consider(0);
  // The side of the range with one code more belongs to the extreme value.
  const auto edge = static_cast<float>(-low > high ? low : high);
  for (const float shrink : kShrink) {
    if (extreme == 0) break;
    consider(Rounded(shrink * extreme / edge, as_f16));
    // The factor that is best for these codes.
    const Moments moments(values, tried);
    if (moments.square > 0) {
      consider(Rounded(static_cast<float>(moments.product / moments.square), as_f16));
    }
  }
  Keep(best_codes, values.size(), codes);
  return best;
}

Affine FitAffine(std::span<const float> values, int high, bool as_f16, bool offset_to_zero,
                 uint8_t* codes) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const auto held = [&](float offset) {
    return Rounded(offset_to_zero ? std::min(offset, 0.0f) : offset, as_f16);
  };
  Codes tried, best_codes{};
  Affine best{0, 0, INFINITY};
  const auto consider = [&](float factor, float offset) {
    const double error = Round(values, factor, offset, 0, static_cast<float>(high), tried);
    if (!(error < best.error)) return;
    best = {factor, offset, error};
    best_codes = tried;
  };
  consider(0, held(*least));
  const float middle = (*least + *most) / 2;
  for (const float shrink : kShrink) {
    const float offset = held(middle + (*least - middle) * shrink);
    const float top = middle + (*most - middle) * shrink;
    consider(Rounded(std::max(0.0f, (top - offset) / static_cast<float>(high)), as_f16), offset);
    // The line through these codes; twice, as the codes move with it.
    for (int round = 0; round < 2; ++round) {
      const Moments at(values, tried);
      const auto n = static_cast<double>(values.size());
      const double spread = n * at.square - at.code_sum * at.code_sum;
      if (!(spread > 0)) break;
      const double free_slope = (n * at.product - at.code_sum * at.sum) / spread;
      const float moved = held(static_cast<float>((at.sum - free_slope * at.code_sum) / n));
      // Where the offset was held back, the slope follows it.
      const double slope = (at.product - moved * at.code_sum) / at.square;
      consider(Rounded(static_cast<float>(std::max(0.0, slope)), as_f16), moved);
    }
  }
  Keep(best_codes, values.size(), codes);
  return best;
}

}  // namespace hearth
