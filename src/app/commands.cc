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

// What is wrong with the line, where CLI11 would name something else: it complains of what is
// missing before it tells what it did not understand, and a mistyped flag is both.
std::string Misunderstood(const CLI::App& app, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const auto is_first = [&](const CLI::App* sub) { return sub->get_name() == first; };
  if (!first.empty() && first[0] != '-' && app.get_subcommands(is_first).empty()) {
    return "there is no command " + Quoted(first);
  }
  for (const std::string& word : app.remaining(true)) {
    if (word.size() > 1 && word.starts_with('-')) return "there is no flag " + Quoted(word);
  }
  return "";
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
  AddTop(app, chosen);
  AddKey(app, chosen);
  AddApiDocs(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string what = error.get_exit_code() == 0 ? "" : Misunderstood(app, argc, argv);
    if (!what.empty()) {
      std::fprintf(stderr, "hearth: %s\nRun with --help for more information.\n", what.c_str());
      return 2;
    }
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
