// SPDX-License-Identifier: Apache-2.0
#include "engine/draft_control.h"

#include <algorithm>

#include "base/check.h"

namespace hearth {
namespace {

// A width's mean moves this far towards a new step, and no step counts for more than 1.5 times or
// less than half of what was expected: an interrupted one must not decide.
constexpr int64_t kFewSteps = 4;  // before this many a mean may be anything
constexpr double kNewShare = 0.1, kLeastClip = 0.5, kMostClip = 1.5;
// A width that was not seen for so many steps counts as never measured: one unlucky step must not
// forbid it for ever.
constexpr int64_t kForgotten = 256;
// Until a second width was measured, a further token is taken to cost this share of a token's plain
// time. Experts make it dear (gpt-oss-20b alone: 0.3), dense models on many cores cheap (0.1).
constexpr double kUnknownCost = 0.25;
// No token is free, whatever noise says.
constexpr double kLeastCost = 0.01;

// A plain step now and then keeps the comparison honest; at a gain of 4 that costs 1.5 % of it.
constexpr int64_t kPlainEvery = 48;
// A draft must promise so much more than none.
constexpr double kMargin = 1.03;
// Of everything a sequence says, this share may be spent on drafts that fail.
constexpr double kAllowance = 0.01;
constexpr double kMaxCredit = 4;
// Against the odds one token is tried so often: text changes.
constexpr int kProbeEvery = 32;

// Until something was seen: how often drafts hold by the length of their match. A whole context
// that agrees is a retry or a sibling: what it went on with is as good as a long match.
constexpr std::array<double, DraftOdds::kNumClasses> kFirstOdds = {0.3, 0.45, 0.65, 0.85, 0.85};
constexpr double kPriorWeight = 4;  // tokens that the prior counts for
constexpr double kOddsFade = 0.97;  // per draft: some 30 count

}  // namespace

void WidthTimes::Observe(int width, int64_t us) {
  ++num_observed_;
  if (width < 1 || width > kMaxWidth || us <= 0) return;
  Mean& mean = means_[static_cast<size_t>(width)];
  if (num_observed_ - mean.seen_at >= kForgotten) mean = {};
  ++mean.count;
  mean.seen_at = num_observed_;
  auto seen = static_cast<double>(us);
  if (mean.count > kFewSteps) seen = std::clamp(seen, kLeastClip * mean.us, kMostClip * mean.us);
  mean.us += (seen - mean.us) * std::max(kNewShare, 1.0 / static_cast<double>(mean.count));
}

bool WidthTimes::IsKnown(int width, int64_t within) const {
  if (width < 1 || width > kMaxWidth) return false;
  const Mean& mean = means_[static_cast<size_t>(width)];
  return mean.count >= kFewSteps && num_observed_ - mean.seen_at < within;
}

double WidthTimes::Us(int width) const {
  // Measured neighbours on either side; left and right of a jump the higher one counts for both.
  double us = 0, slope = 0;
  int at = 0;
  for (int w = 1; w <= kMaxWidth; ++w) {
    const Mean& mean = means_[static_cast<size_t>(w)];
    if (mean.count == 0 || num_observed_ - mean.seen_at >= kForgotten) continue;
    const double next = std::max(us, mean.us);
    if (w > width) {
      if (at == 0) return next;
      return us + (next - us) * (width - at) / (w - at);
    }
    slope = at == 0 ? kUnknownCost * next / w : (next - us) / (w - at);
    us = next;
    at = w;
    if (w == width) return us;
  }
  return us + slope * (width - at);
}

int DraftOdds::ClassOf(int match_length) {
  if (match_length == kContextMatch) return kNumClasses - 1;
  return match_length <= 2 ? 0 : match_length <= 4 ? 1 : match_length <= 8 ? 2 : 3;
}

void DraftOdds::Add(int match_length, int drafted, int accepted) {
  Count& count = counts_[static_cast<size_t>(ClassOf(match_length))];
  // The first that failed was tried too; those after it say nothing.
  count.tried = kOddsFade * count.tried + std::min(drafted, accepted + 1);
  count.held = kOddsFade * count.held + accepted;
}

double DraftOdds::Of(int match_length, const DraftOdds* prior) const {
  const int index = ClassOf(match_length);
  const Count& count = counts_[static_cast<size_t>(index)];
  const double before =
      prior == nullptr ? kFirstOdds[static_cast<size_t>(index)] : prior->Of(match_length, nullptr);
  return (count.held + kPriorWeight * before) / (count.tried + kPriorWeight);
}

DraftControl::Step DraftControl::Begin(int streams, double itl_target_us) const {
  Step step;
  step.streams = step.width = streams;
  step.tokens = streams;
  if (!times_.IsKnown(streams, kPlainEvery)) return step;
  step.plain_us = times_.Us(streams);
  step.limit_us = std::max(itl_target_us, 1.25 * step.plain_us);
  return step;
}

double DraftControl::Cost(int streams, int width, int count) const {
  const double plain_us = times_.Us(streams);
  const double share = (times_.Us(width + count) - times_.Us(width)) / plain_us;
  return std::max(kLeastCost * count, share * streams);
}

int DraftControl::Choose(Step& step, DraftHistory& history, int match_length, int most) const {
  HEARTH_CHECK(may_draft(step));
  const double odds = history.odds.Of(match_length, &odds_);
  const double us = times_.Us(step.width);
  double gain = 0, power = 1, best_rate = kMargin * step.tokens / us, best_gain = 0;
  int best = 0;
  for (int k = 1; k <= most && step.width + k <= WidthTimes::kMaxWidth; ++k) {
    power *= odds;
    gain += power;
    const double wider_us = times_.Us(step.width + k);
    if (wider_us > step.limit_us || Cost(step.streams, step.width, k) > history.credit) break;
    const double rate = (step.tokens + gain) / std::max(wider_us, us * (1 + kLeastCost * k));
    if (rate <= best_rate) continue;
    best_rate = rate;
    best_gain = gain;
    best = k;
  }
  if (best == 0 && most > 0 && step.width < WidthTimes::kMaxWidth &&
      history.since_probe >= kProbeEvery && Cost(step.streams, step.width, 1) <= history.credit) {
    history.since_probe = 0;
    best = 1;
    best_gain = odds;
  }
  step.width += best;
  step.tokens += best_gain;
  return best;
}

void DraftControl::Book(DraftHistory& history, int streams, int match_length, int drafted,
                        int accepted) {
  ++history.since_probe;
  double change = kAllowance * (1 + accepted);
  if (drafted > 0) {
    change += accepted - Cost(streams, streams, drafted);
    history.odds.Add(match_length, drafted, accepted);
    odds_.Add(match_length, drafted, accepted);
  }
  history.credit = std::min(kMaxCredit, history.credit + change);
}

}  // namespace hearth
