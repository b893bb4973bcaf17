// SPDX-License-Identifier: Apache-2.0
#include "engine/prompt_reading.h"

#include <algorithm>
#include <cmath>

namespace hearth {

void AskSlice(Sequence& s, int num_drafted, SeqSlice& slice) {
  // A row for the last token of every slice: the only proof that the slice's K and V are numbers,
  // without which they must not be shared. Only those that reached their end speak.
  slice.num_rows = 1 + num_drafted;
  const int end = slice.num_computed + slice.count;
  if (IsScoring(s)) slice.num_rows = std::max(1, end - std::max(slice.num_computed, s.num_read));
  if (!s.request.pools) return;
  slice.num_pooled = std::clamp(end - s.num_read, 0, slice.count);
  slice.pool = s.pool;
}

void BookRead(Sequence& s, const SeqSlice& slice) {
  const int end = std::min(slice.num_computed + slice.count, NumToRead(s));
  s.num_read = std::max(s.num_read, end);
}

std::vector<float> Embedding(std::span<const double> sum) {
  // Scaled first: squares of large sums must not overflow, nor those of small ones vanish.
  double largest = 0;
  for (const double x : sum) largest = std::max(largest, std::abs(x));
  std::vector<float> out(sum.size());
  if (largest == 0) return out;
  double squares = 0;
  for (const double x : sum) squares += (x / largest) * (x / largest);
  const double length = std::sqrt(squares) * largest;
  for (size_t i = 0; i < sum.size(); ++i) out[i] = static_cast<float>(sum[i] / length);
  return out;
}

}  // namespace hearth
