// SPDX-License-Identifier: Apache-2.0
// What rows are asked for, read off their logits in host memory.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.h"
namespace hearth {

// kInvalid for asks that no row can answer.
Status CheckAsks(const StepPlan& plan, int vocab_size);

// Owns the results of a step but for the logits. Thread: one at a time.
class RowResults {
 public:
  // `logits` is [num_rows, vocab]; results point into it until the next Fill.
  std::span<const RowResult> Fill(const StepPlan& plan, std::span<const float> logits,
                                  size_t vocab);

 private:
  void FillRow(const RowAsk& ask, std::span<const float> logits, RowResult& result);

  std::vector<TokenLogit> top_;  // of all rows
  std::vector<RowResult> rows_;
};

}  // namespace hearth
