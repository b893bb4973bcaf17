// SPDX-License-Identifier: Apache-2.0
// How unexpected a token was: what perplexity is made of.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>

#include "base/ids.h"
namespace hearth {

// -ln of the probability the logits give `token`.
template <class T>
double Surprise(std::span<const T> logits, Token token) {
  double top = -INFINITY, sum = 0;
  for (const T logit : logits) top = std::max(top, static_cast<double>(logit));
  for (const T logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return top + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(token)]);
}

}  // namespace hearth
