// SPDX-License-Identifier: Apache-2.0
// Writing to a terminal: how wide it is, and what a model, a file, a client or a server said
// without letting it command the terminal. What the program prints goes through the functions
// below; the gate `terminal` lists who may write to standard output and standard error otherwise.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>
namespace hearth {

// Control characters other than newline and tab as \xNN, in either of the two forms that terminals
// obey (one byte, or U+0080 to U+009F); characters that reorder or break lines (bidirectional
// overrides and isolates, U+2028, U+2029) as \u{NNNN}; bytes that are not UTF-8 as \xNN.
std::string ForTerminal(std::string_view text);

// The same for text that is JSON, which stays JSON of the same value: \u00NN.
std::string JsonForTerminal(std::string_view json);

// To standard output, through ForTerminal.
void PrintOut(std::string_view text);
// To standard error, through ForTerminal and MaskSecrets (secrets.h): error messages, warnings and
// start lines.
[[gnu::format(printf, 1, 2)]] void PrintError(const char* format, ...);
// Text of the program itself that commands the terminal: colours, a line written again. Nothing
// from outside may be in it that has not been through ForTerminal.
void PrintCodes(std::FILE* to, std::string_view codes);

// Of the terminal behind a descriptor; 80 where it does not say, or is none.
int TerminalColumns(int descriptor);

}  // namespace hearth
