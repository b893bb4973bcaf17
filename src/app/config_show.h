// SPDX-License-Identifier: Apache-2.0
// Settings as text that is itself a configuration file, but for passwords, which are not shown.
#pragma once
#include <string>
#include <vector>

#include "app/config.h"
#include "app/flag_list.h"
#include "base/result.h"
namespace hearth {

// The command that the words name (`bench load` or `bench.load`), or all without words.
Result<std::vector<CommandFlags>> CommandsNamed(const std::vector<CommandFlags>& commands,
                                                const std::vector<std::string>& words);

// A value as TOML.
std::string TomlValue(const Flag& flag, const std::vector<std::string>& values);

// One section per command; behind every value a comment with its origin. Flags without a value are
// comments.
std::string ShowSettings(const Settings& settings, const std::vector<CommandFlags>& commands);

}  // namespace hearth
