// SPDX-License-Identifier: Apache-2.0
#include "engine/step_sampler.h"

#include <cmath>

#include "base/check.h"
#include "base/mutant.h"

namespace hearth {
namespace {

constexpr char kNoNumbers[] = "numerical_error";

}  // namespace

std::span<const SliceOutcome> StepSampler::Sample(const StepPlan& plan,
                                                  std::span<Sequence* const> planned,
                                                  std::span<const float> logits) {
  HEARTH_CHECK(planned.size() == plan.slices.size());
  if (outcomes_.size() < planned.size()) outcomes_.resize(planned.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    const SeqSlice& slice = plan.slices[i];
    SliceOutcome& outcome = outcomes_[i];
    outcome.error.clear();
    outcome.tokens.clear();
    outcome.stops = false;
    const auto last = static_cast<size_t>(slice.logits_row + slice.num_logits - 1);
    const std::span<const float> row = logits.subspan(last * vocab_size_, vocab_size_);
    if (slice.count >= planned[i]->backlog()) {
      SayNext(*planned[i], row, outcome);
    } else if (std::isnan(row[0]) && !HEARTH_MUTANT(25)) {
      // Backends answer in all NaN when they met something that is no number.
      outcome.error = kNoNumbers;
    }
  }
  return std::span(outcomes_).first(planned.size());
}

bool StepSampler::SayNext(Sequence& s, std::span<const float> row, SliceOutcome& outcome) {
  const auto index = s.num_generated() + static_cast<int>(outcome.tokens.size());
  if (on_logits_) on_logits_(s.id, index, row);
  const Token token = sampler_.Choose(row, s.request.sampling, *s.past);
  // An infinite logit is as little an answer as NaN: the row's request fails alone.
  const bool is_answer = token >= 0 && std::isfinite(row[static_cast<size_t>(token)]);
  if (!is_answer && !HEARTH_MUTANT(25)) {
    outcome.error = kNoNumbers;
    return false;
  }
  s.past->Append(token);
  outcome.tokens.push_back(token);
  outcome.stops = EndsSequence(s.request.sampling, token);
  return !outcome.stops;
}

}  // namespace hearth
