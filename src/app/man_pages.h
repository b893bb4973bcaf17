// SPDX-License-Identifier: Apache-2.0
// The manual in the form `man` reads, one page per command, from the flags themselves.
#pragma once
#include <string>
#include <vector>
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

struct ManPage {
  std::string file;  // hearth-serve.1
  std::string text;
};

// hearth.1 first. Hidden commands have none.
std::vector<ManPage> ManPages(CLI::App& root);

// Text as roff shows it unchanged, whatever letters it begins with.
std::string RoffText(const std::string& text);

}  // namespace hearth
