// SPDX-License-Identifier: Apache-2.0
// Letters of protocols and names, whatever the locale.
#pragma once
#include <string>
#include <string_view>
namespace hearth {

constexpr char LowerAscii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string LowerAscii(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = LowerAscii(c);
  return out;
}

// Below the space, and DEL.
constexpr bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

}  // namespace hearth
