// SPDX-License-Identifier: Apache-2.0
// A backend that computes on the thread that waits for it, with logits in host memory.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/row_results.h"
namespace hearth {

// Keeps the plan at Begin and does everything in Advance and Finish. Whatever a row is asked for is
// read off its logits, so every ask is answered.
class ImmediateBackend : public Backend {
 public:
  Status Begin(const StepPlan& plan) final;
  bool Advance(const WantsBreak& wants_break) final;
  Result<std::span<const RowResult>> Finish() final;

 protected:
  // So that no step has to find memory for so many rows of logits. Throws bad_alloc.
  void ReserveRows(int count);
  // A plan that must not run is refused here, before anything of it is done.
  virtual Status Check(const StepPlan& plan) const;
  virtual Status Copy(const BlockCopy& copy);
  // For backends that can leave a step: what comes before the logits, in parts. Called until it
  // says true; false: it was left, and another plan may be computed whole before it goes on.
  virtual Result<bool> ComputeLayers(const StepPlan& plan, const WantsBreak& wants_break);
  // The plan's slices, of which there is at least one, or what ComputeLayers left of them. `logits`
  // is [num_rows, vocab_size].
  virtual Status Compute(const StepPlan& plan, std::span<float> logits) = 0;

 private:
  struct UnderWay {
    const StepPlan* plan = nullptr;
    bool copied = false, done = false;
    Status status;
  };
  std::vector<UnderWay> steps_;  // the one that was left, if any, and the one that runs
  std::vector<float> logits_;
  RowResults results_;
};

}  // namespace hearth
