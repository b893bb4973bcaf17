// SPDX-License-Identifier: Apache-2.0
// A configuration file: TOML in, a flat list of its values out, each with its line. Which names
// exist is somebody else's business (config.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
namespace hearth {

enum class ConfigType : unsigned char {
  kSection,  // a table; its own line, so that an empty one is seen too
  kSwitch,
  kNumber,
  kText,
  kList,
  kOther  // a date, a list of lists: nothing that a flag takes
};

struct ConfigEntry {
  std::string section;  // bench.load; empty above the first section
  std::string key;      // empty for kSection
  ConfigType type = ConfigType::kOther;
  ConfigType element = ConfigType::kOther;  // of a list: what all of its values are
  std::vector<std::string> values;          // as they would stand on a command line
  int line = 0;
};

// The name of a type in messages: "a number".
const char* TypeName(ConfigType type);

// Entries in the order of their lines. An error names the line and starts with `path`.
Result<std::vector<ConfigEntry>> ParseConfig(std::string_view text, const std::string& path);

}  // namespace hearth
