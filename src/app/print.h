// SPDX-License-Identifier: Apache-2.0
// Standard output of the commands, so that nothing that a file or a server said commands the
// terminal: PrintOut of base/terminal.h with fmt's formats, and JSON that stays JSON.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/json.h"
#include "base/terminal.h"
namespace hearth {

template <class... Args>
void PrintOut(fmt::format_string<Args...> format, Args&&... args) {
  PrintOut(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

// On several lines, with a line's end.
inline void PrintJson(const Json& json) {
  const std::string text = JsonForTerminal(WriteJson(json, 2)) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace hearth
