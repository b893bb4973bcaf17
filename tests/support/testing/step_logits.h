// SPDX-License-Identifier: Apache-2.0
// Runs one step and keeps its logits.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "backend/backend.h"
namespace hearth::testing {

// The rows one after the other; empty, with a failure of the test, when the step failed.
inline std::vector<float> LogitsOf(Backend& backend, const StepPlan& plan) {
  Result<std::span<const RowResult>> rows = RunStep(backend, plan);
  EXPECT_TRUE(rows.ok()) << rows.status().message();
  std::vector<float> logits;
  if (!rows.ok()) return logits;
  for (const RowResult& row : *rows) {
    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
  }
  return logits;
}

}  // namespace hearth::testing
