// SPDX-License-Identifier: Apache-2.0
#include "base/near_match.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hearth {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last.back();
}

std::string NearMatch(std::string_view name, std::span<const std::string> known) {
  constexpr size_t kLongest = 64;  // nobody mistypes a name of more letters
  if (name.empty() || name.size() > kLongest) return "";
  std::string nearest;
  size_t least = std::max<size_t>(2, name.size() / 4) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(candidate, name);
    // A name that shares no letter is no match, however short both are.
    if (distance >= least || distance >= std::max(candidate.size(), name.size())) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, std::span<const std::string> known) {
  const std::string nearest = NearMatch(name, known);
  return nearest.empty() ? "" : "; did you mean " + Quoted(nearest) + "?";
}

}  // namespace hearth
