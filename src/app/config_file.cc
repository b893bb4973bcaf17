// SPDX-License-Identifier: Apache-2.0
#include "app/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace hearth {
namespace {

// As short as it can be said: 0.7 stays 0.7.
std::string NumberText(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "";
}

// A value of one word; nothing for what is none.
ConfigType Scalar(const toml::node& node, std::string& text) {
  if (const auto* value = node.as_boolean()) {
    text = value->get() ? "true" : "false";
    return ConfigType::kSwitch;
  }
  if (const auto* value = node.as_integer()) {
    text = std::to_string(value->get());
    return ConfigType::kNumber;
  }
  if (const auto* value = node.as_floating_point()) {
    text = NumberText(value->get());
    return ConfigType::kNumber;
  }
  if (const auto* value = node.as_string()) {
    text = value->get();
    return ConfigType::kText;
  }
  return ConfigType::kOther;
}

// A list whose values are all of one type; anything else is kOther.
ConfigType List(const toml::array& array, ConfigEntry& entry) {
  for (const toml::node& node : array) {
    std::string text;
    const ConfigType type = Scalar(node, text);
    if (type == ConfigType::kOther) return ConfigType::kOther;
    if (!entry.values.empty() && type != entry.element) return ConfigType::kOther;
    entry.element = type;
    entry.values.push_back(std::move(text));
  }
  return ConfigType::kList;
}

int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

// toml++ bounds how deep tables nest, and so how deep this goes.
void Flatten(const toml::table& table, const std::string& section, std::vector<ConfigEntry>& out) {
  for (const auto& [name, node] : table) {
    ConfigEntry entry;
    entry.line = static_cast<int>(name.source().begin.line);
    if (entry.line == 0) entry.line = LineOf(node);
    const std::string key(name.str());
    if (const toml::table* inner = node.as_table()) {
      entry.section = section.empty() ? key : section + "." + key;
      entry.type = ConfigType::kSection;
      const std::string path = entry.section;
      out.push_back(std::move(entry));
      Flatten(*inner, path, out);
      continue;
    }
    entry.section = section;
    entry.key = key;
    if (const toml::array* array = node.as_array()) {
      entry.type = List(*array, entry);
    } else {
      std::string text;
      entry.type = Scalar(node, text);
      entry.values.push_back(std::move(text));
    }
    out.push_back(std::move(entry));
  }
}

}  // namespace

const char* TypeName(ConfigType type) {
  switch (type) {
    case ConfigType::kSection:
      return "a section";
    case ConfigType::kSwitch:
      return "true or false";
    case ConfigType::kNumber:
      return "a number";
    case ConfigType::kText:
      return "a string";
    case ConfigType::kList:
      return "a list";
    case ConfigType::kOther:
      break;
  }
  return "a value that no flag takes";
}

Result<std::vector<ConfigEntry>> ParseConfig(std::string_view text, const std::string& path) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error(Code::kInvalid, "%s:%d: not valid TOML: %s", path.c_str(),
                 static_cast<int>(error.source().begin.line),
                 std::string(error.description()).c_str());
  }
  std::vector<ConfigEntry> out;
  Flatten(parsed.table(), "", out);
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return out;
}

}  // namespace hearth
