// SPDX-License-Identifier: Apache-2.0
// The commands and their flags as data, from the CLI11 app that parses the command line: what the
// configuration, the man pages and the completions are made from.
#pragma once
#include <string>
#include <vector>
namespace CLI {
class App;
class Option;
}  // namespace CLI
namespace hearth {

enum class FlagKind : unsigned char { kSwitch, kNumber, kText };

// A flag that a configuration can set. Points into the app, which must stay.
struct Flag {
  CLI::Option* option = nullptr;
  CLI::App* owner =
      nullptr;  // its command, or the group inside of it that limits how many are used
  FlagKind kind = FlagKind::kText;
  bool is_list = false;
  std::string key;       // max-sequences
  std::string variable;  // HEARTH_SERVE_MAX_SEQUENCES
};

struct CommandFlags {
  CLI::App* command = nullptr;
  std::string name;     // bench load
  std::string section;  // bench.load
  std::vector<Flag> flags;
  std::vector<CLI::Option*> positionals;
};

// Every command below `root` in the order of its help, nested ones after their parents. --help,
// --version, --config and hidden flags are no part of it.
std::vector<CommandFlags> ListFlags(CLI::App& root);

// Of those, what a configuration applies to: not the commands that read or describe it.
std::vector<CommandFlags> ListConfigurable(CLI::App& root);

// Of those, what help pages list: not hidden commands and what is below them.
std::vector<CommandFlags> ListShown(CLI::App& root);

// The innermost command that a parsed line names; the root itself when it names none.
CLI::App& ChosenCommand(CLI::App& root);

// For people: "whole number", "number", "text", "switch", with "list of" and limits as the help has
// them.
std::string TypeWords(const Flag& flag);
// The names between which a value must be chosen, if the flag has such: chat, completions.
std::vector<std::string> ChoicesOf(const CLI::Option& option);
// The placeholder of its value in usage lines: PORT, SIZE, FILE; empty for a switch.
std::string ValueName(const Flag& flag);

}  // namespace hearth
