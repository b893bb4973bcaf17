// SPDX-License-Identifier: Apache-2.0
#include "text/split.h"

#include <array>

#include "base/utf8.h"
#include "text/unicode_tables.h"

namespace hearth {
namespace {

constexpr uint8_t kLetter = kUpper | kLower | kCaseless;
constexpr uint8_t kAnySpace = kSpace | kNewline;
constexpr uint8_t kSymbol = kMark | kOtherChar;  // [^\s\p{L}\p{N}]

// What the families do differently. Everything else is one text below.
struct Rules {
  bool cases_split = false;       // a word is upper* lower+, and marks are part of words
  bool any_word_prefix = true;    // a word may take one non-letter before it; else only a space
  bool contraction_first = true;  // 's stands alone; else it ends the word before it
  bool contraction_any_case = true;
  int digits = 3;                 // numbers in groups of this many; 0: whole, with a space before
  bool numbers_end_text = false;  // every number character is cut out before anything else looks
  bool newlines_group = true;     // \s*[\r\n]+, and symbols take the newlines after them
  bool symbols_take_slash = false;
};
constexpr Rules kO200kRules{
    .cases_split = true, .contraction_first = false, .symbols_take_slash = true};
constexpr Rules kLlama3Rules{};
constexpr Rules kQwen2Rules{.digits = 1};
constexpr Rules kGpt2Rules{
    .any_word_prefix = false, .contraction_any_case = false, .digits = 0, .newlines_group = false};
constexpr Rules kSmollmRules{.any_word_prefix = false,
                             .contraction_any_case = false,
                             .digits = 1,
                             .numbers_end_text = true,
                             .newlines_group = false};

constexpr std::array<uint8_t, 128> MakeAsciiClasses() {
  std::array<uint8_t, 128> classes{};
  for (int c = 0; c < 128; ++c) {
    uint8_t kind = kOtherChar;
    if (c >= 'a' && c <= 'z') kind = kLower;
    if (c >= 'A' && c <= 'Z') kind = kUpper;
    if (c >= '0' && c <= '9') kind = kNumber;
    if (c == ' ' || c == '\t' || c == '\v' || c == '\f') kind = kSpace;
    if (c == '\n' || c == '\r') kind = kNewline;
    classes[static_cast<size_t>(c)] = kind;
  }
  return classes;
}
constexpr std::array<uint8_t, 128> kAsciiClass = MakeAsciiClasses();

// The character at `p`: its class, or 0 at the end of the text, and where the next one begins.
struct Char {
  uint8_t kind;
  const char* next;
};
inline Char At(const char* p, const char* end) {
  if (p == end) return {0, p};
  const auto byte = static_cast<uint8_t>(*p);
  if (byte < 0x80) [[likely]]
    return {kAsciiClass[byte], p + 1};
  const Utf8Char c = DecodeUtf8(p, end);
  if (c.num_bytes == 0) return {kOtherChar, p + 1};
  return {ClassOf(c.code_point), p + c.num_bytes};
}

// Past the longest run of characters of the classes `set`.
inline const char* RunEnd(const char* p, const char* end, uint8_t set) {
  for (Char c = At(p, end); (c.kind & set) != 0; c = At(p, end)) p = c.next;
  return p;
}

// Past 's 't 're 've 'm 'll 'd at `p`, or `p`. In any case that includes U+017F, the long s, which
// folds to s; no other non-ASCII character folds to one of these letters.
template <bool kAnyCase>
const char* ContractionEnd(const char* p, const char* end) {
  if (end - p < 2 || *p != '\'') return p;
  const auto lower = [](char c) { return kAnyCase && c >= 'A' && c <= 'Z' ? char(c | 0x20) : c; };
  const char first = lower(p[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
  if (end - p < 3) return p;
  if (kAnyCase && p[1] == '\xc5' && p[2] == '\xbf') return p + 3;
  const char second = lower(p[2]);
  if ((first == 'r' || first == 'v') && second == 'e') return p + 3;
  return first == 'l' && second == 'l' ? p + 3 : p;
}

// prefix? upper* lower+ | prefix? upper+ lower*, where letters without case and marks are both
// upper and lower. A regex engine would try upper* greedily and give characters back until lower+
// finds one: that is the last caseless character of the run, remembered on the way.
const char* CasedWordEnd(const char* begin, const char* end) {
  constexpr uint8_t kUpperSet = kUpper | kCaseless | kMark;
  constexpr uint8_t kLowerSet = kLower | kCaseless | kMark;
  const Char first = At(begin, end);
  const bool takes_prefix = (first.kind & (kSpace | kMark | kOtherChar)) != 0;
  const char* const start = takes_prefix ? first.next : begin;
  const char* p = start;
  const char* past_caseless = nullptr;
  Char c = At(p, end);
  for (; (c.kind & kUpperSet) != 0; c = At(p, end)) {
    p = c.next;
    if (c.kind != kUpper) past_caseless = p;
  }
  if (c.kind == kLower) return RunEnd(p, end, kLowerSet);
  if (past_caseless != nullptr) return past_caseless;
  // A mark in front that cannot be a prefix is a word of its own.
  if (first.kind == kMark) return first.next;
  return p > start ? p : begin;
}

template <Rules R>
const char* WordEnd(const char* begin, const char* end) {
  if constexpr (R.cases_split) {
    const char* word = CasedWordEnd(begin, end);
    return word == begin ? begin : ContractionEnd<true>(word, end);
  }
  const Char first = At(begin, end);
  const bool takes_prefix =
      R.any_word_prefix ? (first.kind & (kSpace | kMark | kOtherChar)) != 0 : *begin == ' ';
  const char* const start = takes_prefix ? first.next : begin;
  const char* const word = RunEnd(start, end, kLetter);
  return word > start ? word : begin;
}

template <Rules R>
const char* NumberEnd(const char* begin, const char* end) {
  if constexpr (R.digits == 0) {
    const char* const start = *begin == ' ' ? begin + 1 : begin;
    const char* const number = RunEnd(start, end, kNumber);
    return number > start ? number : begin;
  }
  const char* p = begin;
  for (int i = 0; i < R.digits; ++i) {
    const Char c = At(p, end);
    if (c.kind != kNumber) break;
    p = c.next;
  }
  return p;
}

template <Rules R>
const char* SymbolsEnd(const char* begin, const char* end) {
  const char* const start = *begin == ' ' ? begin + 1 : begin;
  const char* p = RunEnd(start, end, kSymbol);
  if (p == start) return begin;
  if constexpr (R.newlines_group) {
    while (p < end && (*p == '\r' || *p == '\n' || (R.symbols_take_slash && *p == '/'))) ++p;
  }
  return p;
}

// \s*[\r\n]+ | \s+(?!\S) | \s+ : up to the last newline; else all of it when nothing follows; else
// all but the last, which goes with what follows; else that last one.
template <Rules R>
const char* SpacesEnd(const char* begin, const char* end) {
  const char* p = begin;
  const char* last = begin;  // where the last space begins
  const char* past_newline = nullptr;
  Char c = At(p, end);
  for (; (c.kind & kAnySpace) != 0; c = At(p, end)) {
    last = p;
    p = c.next;
    if (c.kind == kNewline) past_newline = p;
  }
  if (R.newlines_group && past_newline != nullptr) return past_newline;
  const bool text_ends = c.kind == 0 || (R.numbers_end_text && c.kind == kNumber);
  return text_ends || last == begin ? p : last;
}

template <Rules R>
const char* PieceEnd(const char* begin, const char* end) {
  if constexpr (R.contraction_first) {
    const char* const contraction = ContractionEnd<R.contraction_any_case>(begin, end);
    if (contraction > begin) return contraction;
  }
  const char* piece = WordEnd<R>(begin, end);
  if (piece == begin) piece = NumberEnd<R>(begin, end);
  if (piece == begin) piece = SymbolsEnd<R>(begin, end);
  if (piece == begin) piece = SpacesEnd<R>(begin, end);
  return piece;
}

struct NamedRegex {
  SplitRule rule;
  std::string_view regex;
};
constexpr NamedRegex kRegexes[] = {
    {SplitRule::kO200k,
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
     "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {SplitRule::kLlama3,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {SplitRule::kQwen2,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
     " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {SplitRule::kGpt2,
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
};

}  // namespace

const char* NameOf(SplitRule rule) {
  switch (rule) {
    case SplitRule::kO200k:
      return "o200k";
    case SplitRule::kLlama3:
      return "llama-3";
    case SplitRule::kQwen2:
      return "qwen2";
    case SplitRule::kGpt2:
      return "gpt-2";
    case SplitRule::kSmollm:
      return "smollm";
  }
  return "?";
}

PieceScanner ScannerFor(SplitRule rule) {
  switch (rule) {
    case SplitRule::kO200k:
      return PieceEnd<kO200kRules>;
    case SplitRule::kLlama3:
      return PieceEnd<kLlama3Rules>;
    case SplitRule::kQwen2:
      return PieceEnd<kQwen2Rules>;
    case SplitRule::kGpt2:
      return PieceEnd<kGpt2Rules>;
    case SplitRule::kSmollm:
      return PieceEnd<kSmollmRules>;
  }
  return nullptr;
}

std::optional<SplitRule> RuleOfRegex(std::string_view regex) {
  for (const NamedRegex& known : kRegexes) {
    if (known.regex == regex) return known.rule;
  }
  return std::nullopt;
}

}  // namespace hearth
