// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace hearth {
namespace {

int Fail(const std::string& message) {
  std::fprintf(stderr, "hearth: %s\n", message.c_str());
  return 1;
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  CLI::App app("Runs language models on ordinary x86 machines.", "hearth");
  app.set_version_flag("--version", "hearth " HEARTH_VERSION);
  app.require_subcommand(1);
  Command chosen;
  AddInspect(app, chosen);
  AddEval(app, chosen);
  AddRun(app, chosen);
  AddPack(app, chosen);
  AddTokenize(app, chosen);
  AddRender(app, chosen);
  AddBench(app, chosen);
  AddServe(app, chosen);
  AddKey(app, chosen);
  AddApiDocs(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const Status status = chosen();
    if (!status.ok()) return Fail(status.message());
    return 0;
  } catch (const std::bad_alloc&) {
    return Fail("out of memory");
  }
}

}  // namespace hearth
