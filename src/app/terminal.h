// SPDX-License-Identifier: Apache-2.0
// Writing what a model or a file said to a terminal without letting it command the terminal.
#pragma once
#include <string>
#include <string_view>
namespace hearth {

// Control characters other than newline and tab as \xNN: an escape sequence in a reply must not
// move the cursor, change the title or worse.
std::string ForTerminal(std::string_view text);

}  // namespace hearth
