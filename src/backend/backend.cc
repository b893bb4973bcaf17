// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include <new>

namespace hearth {

Result<std::span<const RowResult>> RunStep(Backend& backend, const StepPlan& plan) {
  return RunStep(backend, plan, [] { return false; }, [] {});
}

Result<std::span<const RowResult>> RunStep(Backend& backend, const StepPlan& plan,
                                           const WantsBreak& wants_break,
                                           const std::function<void()>& in_break) {
  const auto no_memory = [&] {
    return Error(Code::kExhausted, "out of memory in a step of %zu tokens", plan.tokens.size());
  };
  try {
    HEARTH_TRY(backend.Begin(plan));
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  // Advance keeps its own failures for Finish; those of a break are not this step's.
  while (!backend.Advance(wants_break)) in_break();
  try {
    return backend.Finish();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace hearth
