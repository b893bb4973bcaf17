// SPDX-License-Identifier: Apache-2.0
#include "app/config_values.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <string_view>

namespace hearth {
namespace {

bool IsPlainNumber(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

const char* Wanted(FlagKind kind) {
  if (kind == FlagKind::kSwitch) return "true or false";
  return kind == FlagKind::kNumber ? "a number" : "a string";
}

// What one value is must fit the flag. Strings are taken for numbers with a unit, such as "4GiB".
std::string ScalarProblem(const Flag& flag, ConfigType type, const std::string& text) {
  const auto expected = [&](const std::string& hint) {
    return std::string("expected ") + Wanted(flag.kind) + ", found " + TypeName(type) + hint;
  };
  const std::string as_key = "; write " + flag.key + " = ";
  switch (flag.kind) {
    case FlagKind::kSwitch:
      return type == ConfigType::kSwitch ? "" : expected("");
    case FlagKind::kNumber:
      if (type == ConfigType::kText && IsPlainNumber(text)) {
        return expected(as_key + text + " without quotes");
      }
      return type == ConfigType::kNumber || type == ConfigType::kText ? "" : expected("");
    case FlagKind::kText:
      if (type == ConfigType::kNumber) return expected(as_key + "\"" + text + "\"");
      if (type == ConfigType::kOther) return expected("; put it in quotes");
      return type == ConfigType::kText ? "" : expected("");
  }
  return "";
}

std::optional<bool> SwitchOf(const std::string& text) {
  for (const char* word : {"true", "1", "yes", "on"}) {
    if (text == word) return true;
  }
  for (const char* word : {"false", "0", "no", "off"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

// CLI11's complaint without the flag's name in front, which the origin says better.
std::string Complaint(const Flag& flag, const CLI::Error& error,
                      const std::vector<std::string>& values) {
  const std::string what = error.what(), prefix = flag.option->get_name() + ": ";
  if (what.starts_with(prefix)) return what.substr(prefix.size());
  const std::string found = values.empty() ? "nothing" : Quoted(values.front());
  return std::string("expected ") + Wanted(flag.kind) + ", found " + found;
}

Status SetSwitch(const Flag& flag, const std::vector<std::string>& values) {
  const std::optional<bool> is_on =
      values.size() == 1 ? SwitchOf(values.front()) : std::optional<bool>();
  if (!is_on) {
    return Error(Code::kInvalid, "expected true or false, found %s",
                 values.empty() ? "nothing" : Quoted(values.front()).c_str());
  }
  // A switch is off unless it is given, except one that has a --no form.
  if (!*is_on && flag.option->get_fnames().empty()) return Status();
  flag.option->add_result(flag.option->get_flag_value(flag.key, *is_on ? "true" : "false"));
  return Status();
}

}  // namespace

std::string TypeProblem(const Flag& flag, const ConfigEntry& entry) {
  if (entry.type != ConfigType::kList) {
    return ScalarProblem(flag, entry.type, entry.values.empty() ? "" : entry.values.front());
  }
  if (!flag.is_list) return std::string("expected ") + Wanted(flag.kind) + ", found a list";
  if (entry.values.empty()) return "expected at least one value, found an empty list";
  for (const std::string& text : entry.values) {
    const std::string problem = ScalarProblem(flag, entry.element, text);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::vector<std::string> ValuesOfVariable(const Flag& flag, const std::string& text) {
  if (!flag.is_list) return {text};
  std::vector<std::string> values;
  for (std::string& each : CLI::detail::split(text, ',')) {
    CLI::detail::trim(each);
    if (!each.empty()) values.push_back(std::move(each));
  }
  return values;
}

Status SetFlag(const Flag& flag, const std::vector<std::string>& values) {
  CLI::Option& option = *flag.option;
  if (flag.kind == FlagKind::kSwitch) {
    HEARTH_TRY(SetSwitch(flag, values));
    if (option.count() == 0) return Status();
  } else {
    for (const std::string& value : values) option.add_result(value);
  }
  try {
    option.run_callback();
  } catch (const CLI::Error& error) {
    option.clear();
    return Status(Code::kInvalid, Complaint(flag, error, values));
  }
  return Status();
}

}  // namespace hearth
