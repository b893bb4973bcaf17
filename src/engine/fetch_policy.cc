// SPDX-License-Identifier: Apache-2.0
#include "engine/fetch_policy.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr double kFade = 0.8;        // what an observation is worth after the next one
constexpr double kFailureCosts = 4;  // times what it took: a dead tier is left alone soon
constexpr int64_t kOldUs = 10'000'000;
constexpr int64_t kLeastPatienceUs = 10'000;
// Below this spread of lengths (relative, squared) a line cannot be told from a proportion.
constexpr double kLeastSpread = 0.01;

}  // namespace

void FetchTime::Observe(int64_t bytes, int64_t us, int64_t now_us) {
  // In units of what is observed, so that one long load does not outweigh all short ones: the
  // policy must be right by a share of the time, not by microseconds.
  const auto x = static_cast<double>(bytes), y = static_cast<double>(std::max<int64_t>(us, 1));
  const double weight = 1 / (x * x);
  weight_ = kFade * weight_ + weight;
  x_ = kFade * x_ + weight * x;
  xx_ = kFade * xx_ + weight * x * x;
  y_ = kFade * y_ + weight * y;
  xy_ = kFade * xy_ + weight * x * y;
  observed_at_us_ = now_us;
  Solve();
}

void FetchTime::Solve() {
  const double spread = weight_ * xx_ - x_ * x_;
  fixed_us_ = 0;
  us_per_byte_ = xy_ / xx_;
  if (spread <= kLeastSpread * weight_ * xx_) return;
  const double slope = (weight_ * xy_ - x_ * y_) / spread;
  const double fixed = (y_ - slope * x_) / weight_;
  if (fixed <= 0) return;  // a proportion says it as well
  fixed_us_ = slope > 0 ? fixed : y_ / weight_;
  us_per_byte_ = std::max(slope, 0.0);
}

bool FetchTime::is_unknown(int64_t now_us) const {
  return weight_ == 0 || now_us - observed_at_us_ > kOldUs;
}

double FetchTime::Predict(int64_t bytes) const {
  return fixed_us_ + us_per_byte_ * static_cast<double>(bytes);
}

const FetchTime* FetchPolicy::TimeOf(int part) const {
  const auto at = static_cast<size_t>(part);
  return part < 0 || at >= times_.size() ? nullptr : &times_[at];
}

void FetchPolicy::Observe(const Share& share, int64_t us, bool succeeded, int64_t now_us) {
  if (share.bytes <= 0 || share.part < 0) return;
  const auto at = static_cast<size_t>(share.part);
  if (at >= times_.size()) times_.resize(at + 1);
  double took_us = static_cast<double>(us);
  if (!succeeded) took_us = std::max(took_us, times_[at].Predict(share.bytes)) * kFailureCosts;
  times_[at].Observe(share.bytes, static_cast<int64_t>(took_us), now_us);
}

bool FetchPolicy::Pays(int64_t tokens, std::span<const Share> shares, int64_t now_us) const {
  if (prefill_us_per_token_ <= 0) return true;
  double longest_us = 0;
  for (const Share& share : shares) {
    const FetchTime* time = TimeOf(share.part);
    if (time == nullptr || time->is_unknown(now_us)) continue;  // worth a try
    longest_us = std::max(longest_us, time->Predict(share.bytes));
  }
  return longest_us < prefill_us_per_token_ * static_cast<double>(tokens);
}

int64_t FetchPolicy::Patience(int64_t tokens, int64_t most_us) const {
  if (prefill_us_per_token_ <= 0) return most_us;
  const auto compute_us = static_cast<int64_t>(prefill_us_per_token_ * static_cast<double>(tokens));
  return std::min(std::max(compute_us, kLeastPatienceUs), most_us);
}

}  // namespace hearth
