// SPDX-License-Identifier: Apache-2.0
#include "app/config_show.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/mask_secrets.h"
#include "base/near_match.h"

namespace hearth {
namespace {

std::string TomlString(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += Printf("\\u%04X", byte);
    } else {
      out += letter;
    }
  }
  return out + "\"";
}

bool IsNumberText(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-e") == std::string::npos;
}

std::string OneValue(const Flag& flag, const std::string& text) {
  if (flag.kind == FlagKind::kSwitch) {
    return text == "true" || text == "1" || text == "yes" || text == "on" ? "true" : "false";
  }
  if (flag.kind == FlagKind::kNumber && IsNumberText(text)) return text;
  return TomlString(text);
}

// CLI11 writes the default of a list as [1,8,32].
std::vector<std::string> DefaultValues(const Flag& flag) {
  const std::string text = flag.option->get_default_str();
  if (flag.kind == FlagKind::kSwitch && text.empty()) return {"false"};
  if (text.empty()) return {};
  if (!flag.is_list || !text.starts_with('[') || !text.ends_with(']')) return {text};
  return CLI::detail::split(text.substr(1, text.size() - 2), ',');
}

std::string Line(const Flag& flag, const Settings& settings) {
  const auto found = settings.values.find(flag.variable);
  if (found != settings.values.end()) {
    std::vector<std::string> values = found->second.values;
    const bool is_masked = std::ranges::any_of(values, HoldsSecret);
    for (std::string& value : values) value = MaskSecretValue(value);
    return flag.key + " = " + TomlValue(flag, values) + "  # " + found->second.origin +
           (is_masked ? ", secrets as ***" : "") + "\n";
  }
  const std::vector<std::string> values = DefaultValues(flag);
  if (!values.empty()) return flag.key + " = " + TomlValue(flag, values) + "  # default\n";
  return "# " + flag.key + (flag.option->get_required() ? " is required" : " is not set") + "\n";
}

}  // namespace

Result<std::vector<CommandFlags>> CommandsNamed(const std::vector<CommandFlags>& commands,
                                                const std::vector<std::string>& words) {
  if (words.empty()) return commands;
  std::string name;
  for (const std::string& word : words) name += (name.empty() ? "" : ".") + word;
  std::vector<std::string> known;
  for (const CommandFlags& each : commands) {
    if (each.section == name) return std::vector<CommandFlags>{each};
    known.push_back(each.section);
  }
  return Error(Code::kNotFound, "no command is named %s%s", Quoted(name).c_str(),
               DidYouMean(name, known).c_str());
}

std::string TomlValue(const Flag& flag, const std::vector<std::string>& values) {
  if (!flag.is_list) return OneValue(flag, values.empty() ? "" : values.front());
  std::string out;
  for (const std::string& value : values) {
    out += (out.empty() ? "" : ", ") + OneValue(flag, value);
  }
  return "[" + out + "]";
}

std::string ShowSettings(const Settings& settings, const std::vector<CommandFlags>& commands) {
  std::string out;
  for (const CommandFlags& command : commands) {
    if (command.flags.empty()) continue;
    out += (out.empty() ? "[" : "\n[") + command.section + "]\n";
    for (const Flag& flag : command.flags) out += Line(flag, settings);
  }
  return out;
}

}  // namespace hearth
