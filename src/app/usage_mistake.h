// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command line that could not be parsed, where CLI11 would name something
// else: it complains of what is missing before it tells what it did not understand, and a mistyped
// flag is both.
#pragma once
#include <string>
namespace CLI {
class App;
}  // namespace CLI
namespace hearth {

// `unknown flag "--modle"; did you mean "--model"?` for a command or flag that does not exist,
// after `root` failed to parse the line; `first` is its first word. Empty when every word is known.
std::string UnknownWord(CLI::App& root, const std::string& first);

// What CLI11 says of an argument or value that is missing, as a person would: "MODEL is missing".
std::string InPlainWords(const std::string& what);

}  // namespace hearth
