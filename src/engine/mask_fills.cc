// SPDX-License-Identifier: Apache-2.0
#include "engine/mask_fills.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr size_t kFillsKept = 512;

}  // namespace

void MaskFills::Begin(const StepPlan& plan, std::span<Sequence* const> planned) {
  fill_of_.assign(planned.size(), kNone);
  fills_.clear();
  for (size_t i = 0; i < planned.size(); ++i) {
    TokenMask* mask = planned[i]->request.mask.get();
    if (mask == nullptr || plan.slices[i].count < planned[i]->backlog()) continue;
    fill_of_[i] = static_cast<int>(fills_.size());
    fills_.push_back({mask, Status(), 0});
  }
  if (bits_.size() < fills_.size() * words_) bits_.resize(fills_.size() * words_);
  next_ = 0;
  if (!fills_.empty() && beside_ != nullptr) beside_->Begin([this] { Work(); });
}

void MaskFills::Work() {
  for (size_t i = next_++; i < fills_.size(); i = next_++) {
    const int64_t began_us = clock_.now_us();
    fills_[i].status = fills_[i].mask->Fill(Bits(i));
    fills_[i].took_us = clock_.now_us() - began_us;
  }
}

void MaskFills::End() {
  if (fills_.empty()) return;
  const int64_t began_us = clock_.now_us();
  const bool was_ready = next_ > fills_.size();  // whoever took the last looked for another
  Work();
  if (beside_ != nullptr) beside_->End();
  ++totals_.num_steps;
  totals_.num_fills += static_cast<int64_t>(fills_.size());
  if (!was_ready) {
    ++totals_.num_delayed;
    totals_.delayed_us += clock_.now_us() - began_us;
  }
  for (const Fill& fill : fills_) {
    if (recent_us_.size() < kFillsKept) recent_us_.push_back(0);
    recent_us_[next_recent_++ % kFillsKept] = fill.took_us;
  }
}

Result<AllowedTokens> MaskFills::Allowed(size_t slice) const {
  const int fill = fill_of_[slice];
  if (fill == kNone) return AllowedTokens();
  HEARTH_TRY(fills_[static_cast<size_t>(fill)].status);
  return AllowedTokens(std::span(bits_).subspan(static_cast<size_t>(fill) * words_, words_));
}

Result<AllowedTokens> MaskFills::Refill(size_t slice) {
  const int fill = fill_of_[slice];
  if (fill == kNone) return AllowedTokens();
  const auto place = static_cast<size_t>(fill);
  HEARTH_TRY(fills_[place].mask->Fill(Bits(place)));
  ++totals_.num_fills;
  return AllowedTokens(Bits(place));
}

MaskTotals MaskFills::totals() const {
  MaskTotals totals = totals_;
  if (recent_us_.empty()) return totals;
  std::vector<int64_t> times = recent_us_;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  totals.median_fill_us = *middle;
  return totals;
}

}  // namespace hearth
