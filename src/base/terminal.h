// SPDX-License-Identifier: Apache-2.0
// Writing to a terminal: how wide it is, and what a model or a file said without letting it command
// the terminal.
#pragma once
#include <string>
#include <string_view>
namespace hearth {

// Control characters other than newline and tab as \xNN: an escape sequence in a reply must not
// move the cursor, change the title or worse.
std::string ForTerminal(std::string_view text);

// Of the terminal behind a descriptor; 80 where it does not say, or is none.
int TerminalColumns(int descriptor);

}  // namespace hearth
