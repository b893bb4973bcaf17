// SPDX-License-Identifier: Apache-2.0
// hearth config: which values the flags have and where they come from; whether the files are right.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/config.h"
#include "app/config_show.h"
#include "app/print.h"

namespace hearth {
namespace {

Status Check(CLI::App& root, const std::string& file) {
  const std::vector<CommandFlags> commands = ListConfigurable(root);
  ConfigSources sources = StandardSources(GivenConfig(root));
  if (!file.empty()) {
    sources.given = file;
    sources.environment.clear();  // one file was asked about, and nothing else
  }
  Settings settings = ReadSettings(sources, commands);
  for (const std::string& warning : settings.warnings) {
    PrintError("warning: %s\n", warning.c_str());
  }
  for (std::string& problem : CheckValues(settings, commands)) {
    settings.problems.push_back(std::move(problem));
  }
  for (const std::string& problem : settings.problems) {
    PrintError("%s\n", problem.c_str());
  }
  if (!settings.problems.empty()) {
    return Error(Code::kInvalid, "the configuration has %zu mistake%s", settings.problems.size(),
                 settings.problems.size() == 1 ? "" : "s");
  }
  for (const std::string& path : settings.files) PrintOut("{}: ok\n", path);
  for (const std::string& path : settings.skipped) {
    PrintOut("{}: not for this user to read, left out\n", path);
  }
  if (settings.files.empty()) {
    PrintOut("no configuration file; looked for {} and {}\n", sources.user_path,
             sources.system_path);
  }
  PrintOut("{} flag{} configured\n", settings.values.size(),
           settings.values.size() == 1 ? "" : "s");
  return Status();
}

Status Show(CLI::App& root, const std::vector<std::string>& words) {
  const std::vector<CommandFlags> commands = ListConfigurable(root);
  Result<std::vector<CommandFlags>> shown = CommandsNamed(commands, words);
  if (!shown.ok()) return std::move(shown).status();
  const Settings settings = ReadSettings(StandardSources(GivenConfig(root)), commands);
  for (const std::string& warning : settings.warnings) {
    PrintError("warning: %s\n", warning.c_str());
  }
  PrintOut(ShowSettings(settings, *shown));
  if (settings.problems.empty()) return Status();
  return Status(Code::kInvalid, settings.problems.front() +
                                    "; what is shown is without it (see `hearth config check`)");
}

}  // namespace

void AddConfig(CLI::App& app, Command& chosen) {
  CLI::App* config =
      app.add_subcommand("config", "Check the configuration, or show it and where it comes from");
  config->require_subcommand(1);
  auto file = std::make_shared<std::string>();
  CLI::App* check = config->add_subcommand(
      "check", "Check a configuration file, or those and the variables that would be used");
  check->add_option("file", *file, "Configuration file; default: those that would be used");
  check->callback([&app, &chosen, file] { chosen = [&app, file] { return Check(app, *file); }; });
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* show = config->add_subcommand(
      "show", "Print the value of every flag as TOML, with where each value comes from");
  show->add_option("command", *words, "Command, such as serve or bench load; default: all");
  show->callback([&app, &chosen, words] { chosen = [&app, words] { return Show(app, *words); }; });
}

}  // namespace hearth
