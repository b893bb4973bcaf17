// SPDX-License-Identifier: Apache-2.0
#include "engine/fetch_policy.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr double kFade = 0.2;
constexpr double kFailureCosts = 4;  // times what it took: a dead tier is left alone soon
constexpr int64_t kOldUs = 10'000'000;
constexpr int64_t kLeastPatienceUs = 10'000;

}  // namespace

void FetchPolicy::Observe(int64_t bytes, int64_t us, bool succeeded, int64_t now_us) {
  if (bytes <= 0) return;
  double rate = static_cast<double>(std::max<int64_t>(us, 1)) / static_cast<double>(bytes);
  if (!succeeded) rate = std::max(rate, us_per_byte_) * kFailureCosts;
  us_per_byte_ = us_per_byte_ == 0 ? rate : us_per_byte_ + kFade * (rate - us_per_byte_);
  observed_at_us_ = now_us;
}

bool FetchPolicy::Pays(int64_t tokens, int64_t bytes, int64_t now_us) const {
  if (prefill_us_per_token_ <= 0 || us_per_byte_ <= 0) return true;
  if (now_us - observed_at_us_ > kOldUs) return true;
  return us_per_byte_ * static_cast<double>(bytes) <
         prefill_us_per_token_ * static_cast<double>(tokens);
}

int64_t FetchPolicy::Patience(int64_t tokens, int64_t most_us) const {
  if (prefill_us_per_token_ <= 0) return most_us;
  const auto compute_us = static_cast<int64_t>(prefill_us_per_token_ * static_cast<double>(tokens));
  return std::min(std::max(compute_us, kLeastPatienceUs), most_us);
}

}  // namespace hearth
