// SPDX-License-Identifier: Apache-2.0
#include "backend/immediate_backend.h"

#include <utility>

#include "base/check.h"

namespace hearth {

Status ImmediateBackend::Check(const StepPlan&) const { return Status(); }

Status ImmediateBackend::Copy(const BlockCopy&) {
  return Error(Code::kUnsupported, "%.*s copies no blocks", static_cast<int>(name().size()),
               name().data());
}

Status ImmediateBackend::Begin(const StepPlan& plan) {
  HEARTH_CHECK(plan_ == nullptr);
  HEARTH_TRY(CheckAsks(plan, vocab_size()));
  HEARTH_TRY(Check(plan));
  plan_ = &plan;
  return Status();
}

Result<std::span<const RowResult>> ImmediateBackend::Finish() {
  HEARTH_CHECK(plan_ != nullptr);
  const StepPlan& plan = *std::exchange(plan_, nullptr);
  for (const BlockCopy& copy : plan.copies) HEARTH_TRY(Copy(copy));
  const auto vocab = static_cast<size_t>(vocab_size());
  const size_t num_logits = static_cast<size_t>(plan.num_rows) * vocab;
  if (logits_.size() < num_logits) logits_.resize(num_logits);
  const std::span<float> logits = std::span(logits_).first(num_logits);
  if (!plan.slices.empty()) HEARTH_TRY(Compute(plan, logits));
  return results_.Fill(plan, logits, vocab);
}

}  // namespace hearth
