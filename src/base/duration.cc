// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hearth {
namespace {

constexpr double kMaxSeconds = 1e9;  // thirty years

// The unit that `text` begins with, and how many bytes it has; 0 bytes: none.
std::pair<double, size_t> UnitOf(std::string_view text) {
  if (text.starts_with("ms")) return {1e-3, 2};
  if (text.starts_with('s')) return {1, 1};
  if (text.starts_with('m')) return {60, 1};
  if (text.starts_with('h')) return {3600, 1};
  return {1, 0};
}

}  // namespace

Result<double> ParseDuration(std::string_view text) {
  const Status wrong = Error(Code::kInvalid, "expected a time such as 30s, 5m or 1h30m, found %s",
                             Quoted(text).c_str());
  std::string_view rest = text;
  const bool is_negative = rest.starts_with('-');
  if (is_negative) rest.remove_prefix(1);
  if (rest.empty()) return wrong;
  double seconds = 0;
  bool had_bare_number = false;
  while (!rest.empty()) {
    // What from_chars takes beside digits, such as "inf" and "1e9", is no time that people write.
    const size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    double number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + digits, number);
    if (digits == 0 || error != std::errc() || end != rest.data() + digits) return wrong;
    rest.remove_prefix(digits);
    const auto [scale, length] = UnitOf(rest);
    if (had_bare_number || (length == 0 && (!rest.empty() || seconds > 0))) return wrong;
    had_bare_number = length == 0;
    rest.remove_prefix(length);
    seconds += number * scale;
  }
  if (!(seconds <= kMaxSeconds)) return wrong;
  return is_negative ? -seconds : seconds;
}

}  // namespace hearth
