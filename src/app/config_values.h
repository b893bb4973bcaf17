// SPDX-License-Identifier: Apache-2.0
// From a configured value to a flag's: types, lists, and the flag's own checks.
#pragma once
#include <string>
#include <vector>

#include "app/config_file.h"
#include "app/flag_list.h"
#include "base/result.h"
namespace hearth {

// What is wrong with the type of a file's value for this flag, and how to write it; empty: nothing.
std::string TypeProblem(const Flag& flag, const ConfigEntry& entry);

// A variable's text as values: lists are comma-separated.
std::vector<std::string> ValuesOfVariable(const Flag& flag, const std::string& text);

// Gives the flag these values as if they stood on the line. When its checks refuse them, the flag
// is left as it was.
Status SetFlag(const Flag& flag, const std::vector<std::string>& values);

}  // namespace hearth
