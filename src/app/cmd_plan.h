// SPDX-License-Identifier: Apache-2.0
// hearth plan, apart from commands.h.
#pragma once
#include "app/commands.h"
namespace hearth {

void AddPlan(CLI::App& app, Command& chosen);
// `hearth plan fleet`, below it.
CLI::App* AddPlanFleet(CLI::App& plan, Command& chosen);

}  // namespace hearth
