// SPDX-License-Identifier: Apache-2.0
#include "app/divergence.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hearth {
namespace {

// ln of the sum of exponentials.
template <class T>
double LogSum(std::span<const T> logits) {
  double top = -INFINITY, sum = 0;
  for (const T logit : logits) top = std::max(top, static_cast<double>(logit));
  for (const T logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return top + std::log(sum);
}

template <class T>
std::ptrdiff_t Top(std::span<const T> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

}  // namespace

void Divergence::Add(std::span<const double> want, std::span<const float> got) {
  HEARTH_CHECK(want.size() == got.size() && !want.empty());
  const double want_sum = LogSum(want), got_sum = LogSum(got);
  double kl = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double log_p = want[i] - want_sum, log_q = static_cast<double>(got[i]) - got_sum;
    kl += std::exp(log_p) * (log_p - log_q);
    const double delta = static_cast<double>(got[i]) - want[i];
    error_ += delta * delta;
    square_ += want[i] * want[i];
  }
  ++rows_;
  if (Top(want) == Top(got)) ++same_top_;
  sum_kl_ += kl;
  max_kl_ = std::isnan(kl) ? kl : std::max(max_kl_, kl);
}

void Divergence::Add(const Divergence& other) {
  rows_ += other.rows_;
  same_top_ += other.same_top_;
  sum_kl_ += other.sum_kl_;
  max_kl_ = std::isnan(other.max_kl_) ? other.max_kl_ : std::max(max_kl_, other.max_kl_);
  error_ += other.error_;
  square_ += other.square_;
}

}  // namespace hearth
