// SPDX-License-Identifier: Apache-2.0
// hearth fleet, apart from commands.h.
#pragma once
#include "app/commands.h"
namespace hearth {

void AddFleet(CLI::App& app, Command& chosen);

}  // namespace hearth
