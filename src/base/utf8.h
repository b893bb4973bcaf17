// SPDX-License-Identifier: Apache-2.0
// One code point at a time out of bytes that may not be UTF-8.
#pragma once
#include <cstdint>
#include <string>
namespace hearth {

// What stands at the front of some bytes.
struct Utf8Char {
  uint32_t code_point = 0;
  int num_bytes = 0;  // 0: not UTF-8 here (or a code point that the bytes end within)
};

// Decodes one code point by the table of the Unicode standard: no surrogates, no overlong forms,
// nothing above U+10FFFF. `begin` < `end`.
inline Utf8Char DecodeUtf8(const char* begin, const char* end) {
  const auto byte = [begin](int i) { return static_cast<uint8_t>(begin[i]); };
  const auto continues = [&](int i) { return (byte(i) & 0xc0) == 0x80; };
  const uint32_t lead = byte(0);
  const auto available = end - begin;
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xc2) return {};
  if (lead < 0xe0) {
    if (available < 2 || !continues(1)) return {};
    return {((lead & 0x1f) << 6) | (byte(1) & 0x3fu), 2};
  }
  if (lead < 0xf0) {
    if (available < 3 || !continues(1) || !continues(2)) return {};
    const uint32_t code_point =
        ((lead & 0x0f) << 12) | ((byte(1) & 0x3fu) << 6) | (byte(2) & 0x3fu);
    if (code_point < 0x800 || (code_point >= 0xd800 && code_point < 0xe000)) return {};
    return {code_point, 3};
  }
  if (lead >= 0xf5 || available < 4 || !continues(1) || !continues(2) || !continues(3)) return {};
  const uint32_t code_point = ((lead & 0x07) << 18) | ((byte(1) & 0x3fu) << 12) |
                              ((byte(2) & 0x3fu) << 6) | (byte(3) & 0x3fu);
  if (code_point < 0x10000 || code_point >= 0x110000) return {};
  return {code_point, 4};
}

// `code_point` < 0x110000.
inline void AppendUtf8(uint32_t code_point, std::string& out) {
  const auto tail = [&](int shift) {
    out += static_cast<char>(0x80 | ((code_point >> shift) & 0x3f));
  };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xc0 | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xe0 | (code_point >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace hearth
