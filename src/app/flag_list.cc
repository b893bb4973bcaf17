// SPDX-License-Identifier: Apache-2.0
#include "app/flag_list.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <string_view>

namespace hearth {
namespace {

std::string AsVariable(const std::string& section, const std::string& key) {
  std::string name = "HEARTH_" + section + "_" + key;
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    letter = std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

// INT:[0..65535] is INT with limits.
std::string_view BaseType(std::string_view type) { return type.substr(0, type.find(':')); }

FlagKind KindOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return FlagKind::kSwitch;
  const std::string type = option.get_type_name();
  const std::string_view base = BaseType(type);
  const bool is_number = base == "INT" || base == "UINT" || base == "FLOAT";
  return is_number ? FlagKind::kNumber : FlagKind::kText;
}

// auto|off|N: words that are values by themselves, and a number.
std::string ValuesInWords(const std::string& values) {
  std::vector<std::string> each = CLI::detail::split(values, '|');
  if (each.back() == "N") each.back() = "whole number";
  std::string words = each.front();
  for (size_t i = 1; i < each.size(); ++i) {
    words += (i + 1 < each.size() ? ", " : " or ") + each[i];
  }
  return words;
}

void Collect(CLI::App& owner, CommandFlags& into) {
  for (CLI::Option* option : owner.get_options([](CLI::Option*) { return true; })) {
    // One that may be named too, such as serve's model, is a flag as well.
    if (option->get_positional()) into.positionals.push_back(option);
    const auto& names = option->get_lnames();
    if (names.empty() || option->get_group().empty() || option == owner.get_help_ptr()) continue;
    Flag flag;
    flag.option = option;
    flag.owner = &owner;
    flag.kind = KindOf(*option);
    flag.is_list = option->get_items_expected_max() > 1;
    flag.key = names.front();
    flag.variable = AsVariable(into.section, flag.key);
    into.flags.push_back(std::move(flag));
  }
  for (CLI::App* group :
       owner.get_subcommands([](CLI::App* sub) { return sub->get_name().empty(); })) {
    Collect(*group, into);
  }
}

void Walk(CLI::App& parent, const std::string& name, const std::string& section,
          std::vector<CommandFlags>& out) {
  for (CLI::App* sub : parent.get_subcommands([](CLI::App*) { return true; })) {
    if (sub->get_name().empty()) continue;
    CommandFlags found;
    found.command = sub;
    found.name = name.empty() ? sub->get_name() : name + " " + sub->get_name();
    found.section = section.empty() ? sub->get_name() : section + "." + sub->get_name();
    Collect(*sub, found);
    const std::string inner_name = found.name, inner_section = found.section;
    out.push_back(std::move(found));
    Walk(*sub, inner_name, inner_section, out);
  }
}

}  // namespace

std::vector<CommandFlags> ListFlags(CLI::App& root) {
  std::vector<CommandFlags> out;
  Walk(root, "", "", out);
  return out;
}

std::vector<CommandFlags> ListConfigurable(CLI::App& root) {
  std::vector<CommandFlags> out = ListFlags(root);
  std::erase_if(out, [](const CommandFlags& each) {
    const std::string first = each.name.substr(0, each.name.find(' '));
    return first == "config" || first == "docs" || first == "doctor";
  });
  return out;
}

std::vector<CommandFlags> ListShown(CLI::App& root) {
  std::vector<CommandFlags> out = ListFlags(root);
  std::erase_if(out, [&](const CommandFlags& each) {
    for (const CLI::App* app = each.command; app != &root; app = app->get_parent()) {
      if (app->get_group().empty()) return true;
    }
    return false;
  });
  return out;
}

CLI::App& ChosenCommand(CLI::App& root) {
  const std::vector<CLI::App*> parsed = root.get_subcommands();
  return parsed.empty() ? root : ChosenCommand(*parsed.front());
}

std::string TypeWords(const Flag& flag) {
  const std::string type = flag.option->get_type_name();
  const std::string& values = flag.option->get_option_text();
  if (values.find('|') != std::string::npos) return ValuesInWords(values);
  std::string words = "text";
  if (flag.kind == FlagKind::kSwitch) words = "switch";
  if (flag.kind == FlagKind::kNumber) words = BaseType(type) == "FLOAT" ? "number" : "whole number";
  if (flag.option->get_option_text() == "SIZE") words = "size";
  if (flag.is_list) words = "list: " + words;
  const size_t limits = type.find_first_of("[{", std::min(type.find(':'), type.size()));
  const bool has_limits = limits != std::string::npos && words != "size";
  return has_limits ? words + " " + type.substr(limits) : words;
}

std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  std::vector<std::string> out = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
  for (std::string& each : out) CLI::detail::trim(each);
  return out;
}

std::string ValueName(const Flag& flag) {
  if (flag.kind == FlagKind::kSwitch) return "";
  if (!flag.option->get_option_text().empty()) return flag.option->get_option_text();
  const std::string type = flag.option->get_type_name();
  const std::string_view base = BaseType(type);
  if (flag.kind == FlagKind::kNumber) return "N";
  return base.empty() || base == "TEXT" ? "VALUE" : std::string(base);
}

}  // namespace hearth
