// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include <new>

namespace hearth {

Result<std::span<const RowResult>> RunStep(Backend& backend, const StepPlan& plan) {
  try {
    HEARTH_TRY(backend.Begin(plan));
    return backend.Finish();
  } catch (const std::bad_alloc&) {
    return Error(Code::kExhausted, "out of memory in a step of %zu tokens", plan.tokens.size());
  }
}

}  // namespace hearth
