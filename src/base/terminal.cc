// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <sys/ioctl.h>

#include "base/ascii.h"
#include "base/result.h"

namespace hearth {

std::string ForTerminal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_control = IsControl(text[i]) && text[i] != '\n' && text[i] != '\t';
    // U+0080 to U+009F, which some terminals obey as well, is C2 80 to C2 9F.
    const bool is_c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_c1) {
      out += Printf("\\x%02x", static_cast<unsigned char>(text[++i]));
    } else if (is_control) {
      out += Printf("\\x%02x", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

int TerminalColumns(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace hearth
