// SPDX-License-Identifier: Apache-2.0
// One configuration: every flag is also a key of hearth.toml and an environment variable. A flag on
// the command line counts more than a variable, that more than the user's file, that more than the
// system's, and all more than the default.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/flag_list.h"
#include "base/result.h"
namespace hearth {

// Where values may come from.
struct ConfigSources {
  std::string given;  // --config or HEARTH_CONFIG: instead of the two files below
  std::string system_path, user_path;
  std::vector<std::string> environment;  // NAME=value
};
// The --config of a parsed line, before or behind the command; empty when it has none.
std::string GivenConfig(CLI::App& root);
// What this process was started with. `flag` is the value of --config, or empty.
ConfigSources StandardSources(const std::string& flag);

// The stronger, the lower.
enum class Rank : unsigned char { kLine, kVariable, kUserFile, kSystemFile };

struct Setting {
  Rank rank = Rank::kLine;
  std::vector<std::string> values;
  std::string origin;  // HEARTH_SERVE_PORT, or /etc/hearth/hearth.toml:3
};

// Everything that is configured, for all commands; of several values for a flag the strongest.
struct Settings {
  std::map<std::string, Setting> values;  // by Flag::variable, which is unique
  std::vector<std::string> files;         // that were read
  std::vector<std::string> skipped;       // the system's, where this user may not read it
  std::vector<std::string> problems;      // what is wrong with them, with file and line
  std::vector<std::string> warnings;      // variables that name no flag
};
Settings ReadSettings(const ConfigSources& sources, const std::vector<CommandFlags>& commands);

// Gives the flags that the parsed line left out their configured values. A value that a stronger
// source's flag excludes is left out as well.
Status Apply(const Settings& settings, const CommandFlags& command);

// What is wrong with the values themselves, one message each, as the flags' own checks have it.
// Changes the flags: for an app that runs nothing.
std::vector<std::string> CheckValues(const Settings& settings,
                                     const std::vector<CommandFlags>& commands);

// What the configuration did to a parsed line.
struct ConfigOutcome {
  Status status;
  std::vector<std::string> warnings;
};
// Adds --config to the app and its commands, and has parsing apply the configuration to the command
// that the line names. Call it when all commands are there; the outcome is known after parsing.
std::shared_ptr<const ConfigOutcome> AddConfiguration(CLI::App& root);

// Variables of ours that set no flag, and what they are for; the documents list them.
struct PlainVariable {
  const char* name;
  const char* meaning;
};
const std::vector<PlainVariable>& PlainVariables();

}  // namespace hearth
