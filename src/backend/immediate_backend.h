// SPDX-License-Identifier: Apache-2.0
// A backend that computes on the thread that waits for it, with logits in host memory.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/row_results.h"
namespace hearth {

// Keeps the plan at Begin and does everything in Finish. Whatever a row is asked for is read off
// its logits, so every ask is answered.
class ImmediateBackend : public Backend {
 public:
  Status Begin(const StepPlan& plan) final;
  Result<std::span<const RowResult>> Finish() final;

 protected:
  // A plan that must not run is refused here, before anything of it is done.
  virtual Status Check(const StepPlan& plan) const;
  virtual Status Copy(const BlockCopy& copy);
  // The plan's slices, of which there is at least one. `logits` is [num_rows, vocab_size].
  virtual Status Compute(const StepPlan& plan, std::span<float> logits) = 0;

 private:
  const StepPlan* plan_ = nullptr;
  std::vector<float> logits_;
  RowResults results_;
};

}  // namespace hearth
