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

// For nfc.h: rows in order of their first fields, so that they can be searched.
struct NfcDecomposition {
  uint32_t code_point;
  uint16_t offset, count;  // in kNfcDecomposed; decomposed all the way
};
struct NfcCombining {
  uint32_t first, last;
  uint8_t combining_class;  // canonical, never 0
};
struct NfcComposition {
  uint32_t first, second, composed;
};
extern const uint16_t kNfcPage[0x110000 >> kUnicodePageBits];
extern const uint8_t
    kNfcAttention[];  // pages of 128; 0: NFC leaves it alone, whatever surrounds it
extern const uint32_t kNfcDecomposed[];
extern const NfcDecomposition kNfcDecompositions[];
extern const NfcCombining kNfcCombining[];
extern const NfcComposition kNfcCompositions[];
extern const int kNumNfcDecompositions, kNumNfcCombining, kNumNfcCompositions;

// False: neither part of a composition's end, nor decomposed, nor reordered by NFC.
inline bool NfcNeedsAttention(uint32_t code_point) {
  const uint32_t page = kNfcPage[code_point >> kUnicodePageBits];
  return kNfcAttention[(page << kUnicodePageBits) +
                       (code_point & ((1u << kUnicodePageBits) - 1))] != 0;
}

}  // namespace hearth
