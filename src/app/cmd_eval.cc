// SPDX-License-Identifier: Apache-2.0
// hearth eval: logits and perplexity of a model on given tokens or text.
#include <CLI/CLI.hpp>

#include "app/commands.h"

namespace hearth {

void AddEval(CLI::App& app, Command& chosen) {
  CLI::App* sub = app.add_subcommand("eval", "Measure a model");
  sub->callback([&chosen] { chosen = [] { return Error(Code::kUnsupported, "not built yet"); }; });
}

}  // namespace hearth
