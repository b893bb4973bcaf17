// SPDX-License-Identifier: Apache-2.0
// hearth plan, apart from commands.h.
#pragma once
#include "app/commands.h"
namespace hearth {

void AddPlan(CLI::App& app, Command& chosen);

}  // namespace hearth
