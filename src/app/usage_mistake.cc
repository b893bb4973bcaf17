// SPDX-License-Identifier: Apache-2.0
#include "app/usage_mistake.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "app/flag_list.h"
#include "base/near_match.h"
#include "base/result.h"

namespace hearth {
namespace {

bool IsFlag(const std::string& word) { return word.size() > 1 && word.starts_with('-'); }

// Those directly below `parent` that its help lists.
std::vector<std::string> CommandsBelow(const CLI::App& parent) {
  std::vector<std::string> names;
  for (const CLI::App* sub : parent.get_subcommands([](const CLI::App* each) {
         return !each->get_name().empty() && !each->get_group().empty();
       })) {
    names.push_back(sub->get_name());
  }
  return names;
}

bool HasCommand(const CLI::App& parent, const std::string& name) {
  return !parent.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; })
              .empty();
}

std::string UnknownCommand(const CLI::App& parent, const std::string& name) {
  return "unknown command " + Quoted(name) + DidYouMean(name, CommandsBelow(parent));
}

// --modle=x was meant as --model=x: the value is not compared.
std::string UnknownFlag(CLI::App& root, const CLI::App& chosen, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> known{"--help"};
  for (const CommandFlags& command : ListFlags(root)) {
    if (command.command != &chosen) continue;
    for (const Flag& each : command.flags) known.push_back("--" + each.key);
  }
  return "unknown flag " + Quoted(flag) + (flag.starts_with("--") ? DidYouMean(flag, known) : "");
}

// "MODEL" for the argument that CLI11 calls model; flags as they are.
std::string ArgumentName(std::string name) {
  if (IsFlag(name)) return name;
  for (char& letter : name) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return name;
}

}  // namespace

std::string InPlainWords(const std::string& what) {
  constexpr std::string_view kMissing = " missing", kRequired = " is required";
  constexpr std::string_view kOneOf = "Exactly 1 option from [";
  if (what == "A subcommand is required") {
    return "a command is missing: `hearth run MODEL` talks to a model, `hearth --help` lists all "
           "commands";
  }
  // "--model: 1 required TEXT missing"
  const size_t value = what.find(": 1 required ");
  if (value != std::string::npos && what.ends_with(kMissing)) {
    return what.substr(0, value) + ": its value is missing";
  }
  const size_t end = what.find(']');
  if (what.starts_with(kOneOf) && end != std::string::npos && what.ends_with(kRequired)) {
    std::string flags = what.substr(kOneOf.size(), end - kOneOf.size());
    for (size_t at = flags.find(','); at != std::string::npos; at = flags.find(',', at + 4)) {
      flags.replace(at, 1, " or ");
    }
    return "expected " + flags;
  }
  if (what.ends_with(kRequired) && what.find(' ') == what.size() - kRequired.size()) {
    return ArgumentName(what.substr(0, what.find(' '))) + " is missing";
  }
  return what;
}

std::string UnknownWord(CLI::App& root, const std::string& first) {
  if (!first.empty() && first[0] != '-' && !HasCommand(root, first)) {
    return UnknownCommand(root, first);
  }
  const CLI::App& chosen = ChosenCommand(root);
  const std::vector<std::string> words = root.remaining(true);
  for (const std::string& word : words) {
    if (IsFlag(word)) return UnknownFlag(root, chosen, word);
  }
  const bool wants_command = &chosen != &root && !CommandsBelow(chosen).empty();
  if (wants_command && !words.empty()) return UnknownCommand(chosen, words.front());
  return "";
}

}  // namespace hearth
