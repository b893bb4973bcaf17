// SPDX-License-Identifier: Apache-2.0
// What kind of character a code point is, as far as splitting text into pieces needs to know.
// Unicode 16.0. The tables are generated: tools/make_unicode_tables.py.
#pragma once
#include <cstdint>
namespace hearth {

// Every code point has exactly one of these bits, so a set of classes is an OR of them.
enum CharClass : uint8_t {
  kUpper = 1,       // Lu, Lt
  kLower = 2,       // Ll
  kCaseless = 4,    // Lm, Lo
  kMark = 8,        // Mn, Mc, Me
  kNumber = 16,     // Nd, Nl, No
  kSpace = 32,      // White_Space without line feed and carriage return
  kNewline = 64,    // line feed, carriage return
  kOtherChar = 128  // everything else, unassigned included
};

inline constexpr int kUnicodePageBits = 7;
extern const uint16_t kUnicodePage[0x110000 >> kUnicodePageBits];
extern const uint8_t kUnicodeClass[];  // pages of 128 classes

// `code_point` < 0x110000.
inline uint8_t ClassOf(uint32_t code_point) {
  const uint32_t page = kUnicodePage[code_point >> kUnicodePageBits];
  return kUnicodeClass[(page << kUnicodePageBits) + (code_point & ((1u << kUnicodePageBits) - 1))];
}

}  // namespace hearth
