// SPDX-License-Identifier: Apache-2.0
// A backend that shares its cores with others: every step of it passes a gate.
#pragma once
#include <memory>

#include "backend/backend.h"
#include "backend/step_gate.h"
namespace hearth {

// Its results are those of `inner`. `gate` outlives it.
std::unique_ptr<Backend> BehindGate(std::unique_ptr<Backend> inner, StepGate& gate);

}  // namespace hearth
