// SPDX-License-Identifier: Apache-2.0
#include "backend/immediate_backend.h"

#include <new>
#include <utility>

#include "base/check.h"

namespace hearth {

void ImmediateBackend::ReserveRows(int count) {
  logits_.reserve(static_cast<size_t>(count) * static_cast<size_t>(vocab_size()));
}

Status ImmediateBackend::Check(const StepPlan&) const { return Status(); }

Status ImmediateBackend::Copy(const BlockCopy&) {
  return Error(Code::kUnsupported, "%.*s copies no blocks", static_cast<int>(name().size()),
               name().data());
}

Result<bool> ImmediateBackend::ComputeLayers(const StepPlan&, const WantsBreak&) { return true; }

Status ImmediateBackend::Begin(const StepPlan& plan) {
  HEARTH_CHECK(steps_.size() < 2);
  HEARTH_TRY(CheckAsks(plan, vocab_size()));
  HEARTH_TRY(Check(plan));
  steps_.push_back({&plan, false, false, Status()});
  return Status();
}

bool ImmediateBackend::Advance(const WantsBreak& wants_break) {
  HEARTH_CHECK(!steps_.empty());
  UnderWay& step = steps_.back();
  const StepPlan& plan = *step.plan;
  for (size_t i = 0; !step.copied && step.status.ok() && i < plan.copies.size(); ++i) {
    step.status = Copy(plan.copies[i]);
  }
  step.copied = true;
  if (!step.done && step.status.ok() && !plan.slices.empty()) {
    try {
      Result<bool> done = ComputeLayers(plan, wants_break);
      if (done.ok() && !*done) return false;
      if (!done.ok()) step.status = std::move(done).status();
    } catch (const std::bad_alloc&) {
      step.status =
          Error(Code::kExhausted, "out of memory in a step of %zu tokens", plan.tokens.size());
    }
  }
  step.done = true;
  return true;
}

Result<std::span<const RowResult>> ImmediateBackend::Finish() {
  while (!Advance([] { return false; })) {
  }
  const UnderWay step = std::move(steps_.back());
  steps_.pop_back();
  HEARTH_TRY(step.status);
  const StepPlan& plan = *step.plan;
  const auto vocab = static_cast<size_t>(vocab_size());
  const size_t num_logits = static_cast<size_t>(plan.num_rows) * vocab;
  if (logits_.size() < num_logits) logits_.resize(num_logits);
  const std::span<float> logits = std::span(logits_).first(num_logits);
  if (!plan.slices.empty()) HEARTH_TRY(Compute(plan, logits));
  return results_.Fill(plan, logits, vocab);
}

}  // namespace hearth
