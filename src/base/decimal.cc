// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <charconv>
#include <cmath>

namespace hearth {

double MeantBy(float value) {
  if (!std::isfinite(value)) return static_cast<double>(value);
  char digits[48];
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double meant = 0;
  std::from_chars(digits, end, meant);
  return meant;
}

}  // namespace hearth
