// SPDX-License-Identifier: Apache-2.0
// What a shell needs to complete the commands, their flags and the values to choose from.
#pragma once
#include <string>
#include <vector>
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

std::string BashCompletion(CLI::App& root);
std::string ZshCompletion(CLI::App& root);
std::string FishCompletion(CLI::App& root);

}  // namespace hearth
