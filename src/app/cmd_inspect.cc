// SPDX-License-Identifier: Apache-2.0
// hearth inspect: what a model file is, without reading its weights.
#include <CLI/CLI.hpp>

#include "app/commands.h"

namespace hearth {

void AddInspect(CLI::App& app, Command& chosen) {
  CLI::App* sub = app.add_subcommand("inspect", "Show what a model file holds");
  sub->callback([&chosen] { chosen = [] { return Error(Code::kUnsupported, "not built yet"); }; });
}

}  // namespace hearth
