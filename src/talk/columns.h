// SPDX-License-Identifier: Apache-2.0
// How wide a text is on a terminal, where some characters take two columns and some none.
#pragma once
#include <string>
#include <string_view>
namespace hearth {

// Makes the process's character type UTF-8, whatever the environment says: widths and the line
// editor need it. Call it once, before there are other threads.
void UseUtf8();

// Of one line of valid UTF-8.
int ColumnsOf(std::string_view text);
// The end of the text that fits into so many columns.
std::string LastColumns(std::string_view text, int columns);

}  // namespace hearth
