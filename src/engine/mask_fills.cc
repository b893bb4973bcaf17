// SPDX-License-Identifier: Apache-2.0
#include "engine/mask_fills.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr size_t kFillsKept = 512;
// What a step may wait for its masks. Beyond, whoever keeps it waiting is to be filled ahead.
constexpr int64_t kMaxWaitUs = 1'000;

}  // namespace

void MaskFills::Begin(const StepPlan& plan, std::span<Sequence* const> planned) {
  fill_of_.assign(planned.size(), kNone);
  fills_.clear();
  for (size_t i = 0; i < planned.size(); ++i) {
    TokenMask* mask = planned[i]->request.mask.get();
    if (mask == nullptr || plan.slices[i].count < planned[i]->backlog()) continue;
    fill_of_[i] = static_cast<int>(fills_.size());
    fills_.push_back({planned[i], mask, Status(), 0, planned[i]->filled != nullptr});
  }
  if (bits_.size() < fills_.size() * words_) bits_.resize(fills_.size() * words_);
  num_beside_ = 0;
  for (size_t i = 0; i < fills_.size(); ++i) {
    num_beside_ += fills_[i].was_ahead ? 0 : 1;
    if (!fills_[i].was_ahead) continue;
    const std::unique_ptr<FilledMask> filled = std::move(fills_[i].sequence->filled);
    std::copy(filled->bits.begin(), filled->bits.end(), Bits(i).begin());
    fills_[i].status = filled->status;
    fills_[i].took_us = filled->took_us;
    ++totals_.num_ahead;
  }
  next_ = 0;
  if (num_beside_ > 0 && beside_ != nullptr) beside_->Begin([this] { Work(); });
}

void MaskFills::Work() {
  for (size_t i = next_++; i < fills_.size(); i = next_++) {
    if (fills_[i].was_ahead) continue;
    const int64_t began_us = clock_.now_us();
    fills_[i].status = fills_[i].mask->Fill(Bits(i));
    fills_[i].took_us = clock_.now_us() - began_us;
  }
}

void MaskFills::End() {
  if (fills_.empty()) return;
  const int64_t began_us = clock_.now_us();
  // Whoever took the last looked for another.
  const bool was_ready = num_beside_ == 0 || next_ > fills_.size();
  if (num_beside_ > 0) Work();
  if (num_beside_ > 0 && beside_ != nullptr) beside_->End();
  ++totals_.num_steps;
  totals_.num_fills += static_cast<int64_t>(fills_.size());
  if (!was_ready) {
    const int64_t waited_us = clock_.now_us() - began_us;
    ++totals_.num_delayed;
    totals_.delayed_us += waited_us;
    if (beside_ != nullptr && waited_us > kMaxWaitUs) MarkDear(waited_us);
  }
  for (const Fill& fill : fills_) {
    if (recent_us_.size() < kFillsKept) recent_us_.push_back(0);
    recent_us_[next_recent_++ % kFillsKept] = fill.took_us;
  }
}

// The dearest first, until the step would not have waited.
void MaskFills::MarkDear(int64_t waited_us) {
  std::vector<const Fill*> beside;
  for (const Fill& fill : fills_) {
    if (!fill.was_ahead) beside.push_back(&fill);
  }
  std::sort(beside.begin(), beside.end(),
            [](const Fill* a, const Fill* b) { return a->took_us > b->took_us; });
  for (const Fill* fill : beside) {
    if (waited_us <= kMaxWaitUs) return;
    fill->sequence->mask_is_dear = true;
    waited_us -= fill->took_us;
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

MaskTotals MaskTotals::With(MaskTotals other) const {
  other.num_steps += num_steps;
  other.num_fills += num_fills;
  other.num_delayed += num_delayed;
  other.delayed_us += delayed_us;
  other.num_ahead += num_ahead;
  other.median_fill_us = median_fill_us;
  return other;
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
