// SPDX-License-Identifier: Apache-2.0
// Whether a plan stays inside a backend's memory, whoever made it.
#pragma once
#include "backend/backend.h"
namespace hearth {

struct PlanLimits {
  const KvLayout& kv;
  int vocab_size = 0;
  int hidden_size = 0;  // 0: nothing can be pooled
  int max_context = 0;
  int max_step_tokens = 0;
};

// kInvalid for a plan that would reach outside.
Status CheckPlan(const StepPlan& plan, const PlanLimits& limits);

}  // namespace hearth
