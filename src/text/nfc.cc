// SPDX-License-Identifier: Apache-2.0
#include "text/nfc.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/utf8.h"
#include "text/unicode_tables.h"

namespace hearth {
namespace {

// A byte that is no UTF-8 is carried as a number past the last code point.
constexpr uint32_t kStrayByte = 0x110000;

// Hangul syllables are composed by arithmetic (The Unicode Standard, 3.12).
constexpr uint32_t kSyllable = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11a7;
constexpr uint32_t kNumLeads = 19, kNumVowels = 21, kNumTrails = 28;
constexpr uint32_t kNumSyllables = kNumLeads * kNumVowels * kNumTrails;

struct Character {
  uint32_t code_point;
  uint8_t combining_class;
};

uint8_t CombiningClass(uint32_t code_point) {
  const NfcCombining* const end = kNfcCombining + kNumNfcCombining;
  const NfcCombining* row = std::lower_bound(
      kNfcCombining, end, code_point, [](const NfcCombining& r, uint32_t c) { return r.last < c; });
  return row != end && row->first <= code_point ? row->combining_class : 0;
}

void Decompose(uint32_t code_point, std::vector<Character>& out) {
  if (code_point < 0xc0 || code_point >= kStrayByte) return out.push_back({code_point, 0});
  if (const uint32_t index = code_point - kSyllable; index < kNumSyllables) {
    out.push_back({kLead + index / (kNumVowels * kNumTrails), 0});
    out.push_back({kVowel + index / kNumTrails % kNumVowels, 0});
    if (index % kNumTrails != 0) out.push_back({kTrail + index % kNumTrails, 0});
    return;
  }
  const NfcDecomposition* const end = kNfcDecompositions + kNumNfcDecompositions;
  const NfcDecomposition* row =
      std::lower_bound(kNfcDecompositions, end, code_point,
                       [](const NfcDecomposition& r, uint32_t c) { return r.code_point < c; });
  if (row == end || row->code_point != code_point) {
    return out.push_back({code_point, CombiningClass(code_point)});
  }
  for (int i = 0; i < row->count; ++i) {
    const uint32_t part = kNfcDecomposed[row->offset + i];
    out.push_back({part, CombiningClass(part)});
  }
}

// Marks between two starters go in order of their class; equal ones keep theirs.
void Reorder(std::vector<Character>& text) {
  const auto is_starter = [](const Character& c) { return c.combining_class == 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if_not(begin, text.end(), is_starter);
    const auto end = std::find_if(begin, text.end(), is_starter);
    std::stable_sort(begin, end, [](const Character& a, const Character& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

// The one character that the two make, or 0.
uint32_t Composed(uint32_t first, uint32_t second) {
  if (first - kLead < kNumLeads && second - kVowel < kNumVowels) {
    return kSyllable + ((first - kLead) * kNumVowels + (second - kVowel)) * kNumTrails;
  }
  if (first - kSyllable < kNumSyllables && (first - kSyllable) % kNumTrails == 0 &&
      second > kTrail && second < kTrail + kNumTrails) {
    return first + (second - kTrail);
  }
  const NfcComposition* const end = kNfcCompositions + kNumNfcCompositions;
  const auto before = [&](const NfcComposition& row, uint32_t) {
    return row.first != first ? row.first < first : row.second < second;
  };
  const NfcComposition* row = std::lower_bound(kNfcCompositions, end, first, before);
  return row != end && row->first == first && row->second == second ? row->composed : 0;
}

// In place: each character joins the last starter unless something between them is in its way.
void Compose(std::vector<Character>& text) {
  size_t size = 0;
  size_t starter = SIZE_MAX;
  for (const Character c : text) {
    if (starter != SIZE_MAX && c.code_point < kStrayByte) {
      const bool adjacent = size == starter + 1;
      const bool blocked = !adjacent && text[size - 1].combining_class >= c.combining_class;
      const uint32_t joined = blocked ? 0 : Composed(text[starter].code_point, c.code_point);
      if (joined != 0) {
        text[starter].code_point = joined;
        continue;
      }
    }
    if (c.combining_class == 0) starter = size;
    text[size++] = c;
  }
  text.resize(size);
}

bool IsPlain(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    // Everything below U+0300 is as NFC wants it, and its UTF-8 begins below 0xcc.
    if (static_cast<uint8_t>(*p) < 0xcc) {
      ++p;
      continue;
    }
    const Utf8Char c = DecodeUtf8(p, end);
    if (c.num_bytes > 0 && NfcNeedsAttention(c.code_point)) return false;
    p += std::max(c.num_bytes, 1);
  }
  return true;
}

}  // namespace

std::string_view NormalizeNfc(std::string_view text, std::string& storage) {
  if (IsPlain(text)) return text;
  std::vector<Character> characters;
  characters.reserve(text.size());
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p != end;) {
    const Utf8Char c = DecodeUtf8(p, end);
    if (c.num_bytes > 0) {
      Decompose(c.code_point, characters);
    } else {
      characters.push_back({kStrayByte + static_cast<uint8_t>(*p), 0});
    }
    p += std::max(c.num_bytes, 1);
  }
  Reorder(characters);
  Compose(characters);
  storage.clear();
  for (const Character& c : characters) {
    if (c.code_point < kStrayByte) {
      AppendUtf8(c.code_point, storage);
    } else {
      storage += static_cast<char>(c.code_point - kStrayByte);
    }
  }
  return storage;
}

}  // namespace hearth
