// SPDX-License-Identifier: Apache-2.0
// docs/configuration.md: how flags, files and variables go together, and the table of all of them.
#pragma once
#include <string>
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

std::string ConfigurationPage(CLI::App& root);

}  // namespace hearth
