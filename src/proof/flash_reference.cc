// SPDX-License-Identifier: Apache-2.0
#include "proof/flash_reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/num.h"

namespace hearth::cuda {
namespace {

float Rounded(float x) { return F32FromF16(F16FromF32(x)); }

// One head of one sequence. With kIsPlain scores, weights and results are rounded to halves.
template <bool kIsPlain>
std::vector<double> HeadOf(const FlashShape& shape, const uint16_t* q, const uint16_t* k,
                           const uint16_t* v, int length) {
  using T = std::conditional_t<kIsPlain, float, double>;
  const auto d_head = static_cast<size_t>(shape.d_head);
  std::vector<T> scores(static_cast<size_t>(length));
  T top = -INFINITY;
  for (size_t p = 0; p < scores.size(); ++p) {
    T sum = 0;
    for (size_t d = 0; d < d_head; ++d) {
      sum += T{F32FromF16(q[d])} * T{F32FromF16(k[p * d_head + d])};
    }
    scores[p] = sum * T{shape.scale};
    if constexpr (kIsPlain) scores[p] = Rounded(scores[p]);
    top = std::max(top, scores[p]);
  }
  T total = 0;
  for (T& score : scores) total += score = std::exp(score - top);
  std::vector<T> sums(d_head);
  for (size_t p = 0; p < scores.size(); ++p) {
    T weight = scores[p] / total;
    if constexpr (kIsPlain) weight = Rounded(weight);
    for (size_t d = 0; d < d_head; ++d) sums[d] += weight * T{F32FromF16(v[p * d_head + d])};
  }
  std::vector<double> out;
  for (const T sum : sums) {
    if constexpr (kIsPlain) {
      out.push_back(Rounded(sum));
    } else {
      out.push_back(sum);
    }
  }
  return out;
}

}  // namespace

FlashErrors FlashErrorsOf(const FlashShape& shape, std::span<const uint16_t> q,
                          std::span<const uint16_t> k, std::span<const uint16_t> v,
                          std::span<const int32_t> lengths, const float* got) {
  FlashErrors errors;
  const auto d_head = static_cast<size_t>(shape.d_head);
  const auto cache = static_cast<size_t>(shape.max_positions) * d_head;
  for (size_t s = 0; s < lengths.size(); ++s) {
    for (int head = 0; head < shape.n_heads; ++head) {
      const size_t row = s * static_cast<size_t>(shape.n_heads) + static_cast<size_t>(head);
      const auto kv = s * static_cast<size_t>(shape.n_kv_heads) +
                      static_cast<size_t>(head / (shape.n_heads / shape.n_kv_heads));
      const uint16_t* from = q.data() + row * d_head;
      const uint16_t* keys = k.data() + kv * cache;
      const uint16_t* values = v.data() + kv * cache;
      const auto exact = HeadOf<false>(shape, from, keys, values, lengths[s]);
      const auto plain = HeadOf<true>(shape, from, keys, values, lengths[s]);
      for (size_t d = 0; d < d_head; ++d) {
        const double wrong = std::abs(double{got[row * d_head + d]} - exact[d]);
        errors.plain = std::max(errors.plain, std::abs(plain[d] - exact[d]));
        // A NaN is as wrong as can be.
        errors.got = std::isnan(wrong) ? INFINITY : std::max(errors.got, wrong);
      }
    }
  }
  return errors;
}

}  // namespace hearth::cuda
