// SPDX-License-Identifier: Apache-2.0
// The table of marks.h, both ways.
#include "templates/marks.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"

namespace hearth {
namespace {

constexpr uint32_t kTwins = 0x40000, kHighTwins = 0x80000, kHighPieces = 0xb0000;
constexpr uint32_t kLowPieces = 0xc0000, kBytes = 0xd0000, kEndMarks = 0xe0000;
constexpr uint32_t kHighShift = 0x60000;

bool IsMarked(uint32_t code_point) { return code_point >= kTwins && code_point < kEndMarks; }

// A code point at the front of `rest`, which is a template's output and so valid UTF-8.
Utf8Char Front(std::string_view rest) {
  const Utf8Char c = DecodeUtf8(rest.data(), rest.data() + rest.size());
  return c.num_bytes > 0 ? c : Utf8Char{0xfffd, 1};
}

// Appends what the mark at the front of `rest` stands for; returns how many bytes that took.
size_t AppendUnmarked(std::string_view rest, std::string& out) {
  constexpr uint32_t kReplacement = 0xfffd;  // of half a pair: a template cut it in two
  const uint32_t mark = Front(rest).code_point;
  if (mark < kHighTwins) {
    const uint32_t plain = mark - kTwins;
    AppendUtf8(plain >= 0xd800 && plain < 0xe000 ? kReplacement : plain, out);
    return 4;
  }
  if (mark < kHighPieces) {
    AppendUtf8(mark + kHighShift, out);
    return 4;
  }
  if (mark >= kBytes && mark < kBytes + 256) {
    out.push_back(static_cast<char>(mark - kBytes));
    return 4;
  }
  const uint32_t high = mark - kHighPieces;
  const uint32_t low = rest.size() > 4 ? Front(rest.substr(4)).code_point - kLowPieces : ~0u;
  if (mark < kLowPieces && high < 0x280 && low < 0x400) {
    AppendUtf8(kTwins + (high << 10 | low), out);
    return 8;
  }
  AppendUtf8(kReplacement, out);
  return 4;
}

bool IsPlainWord(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-';
  });
}

}  // namespace

std::string Mark(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 4);
  while (!text.empty()) {
    const Utf8Char c = DecodeUtf8(text.data(), text.data() + text.size());
    if (c.num_bytes == 0) {
      AppendUtf8(kBytes + static_cast<uint8_t>(text.front()), out);
      text.remove_prefix(1);
      continue;
    }
    if (c.code_point < kTwins) {
      AppendUtf8(c.code_point + kTwins, out);
    } else if (c.code_point >= kEndMarks) {
      AppendUtf8(c.code_point - kHighShift, out);
    } else {
      AppendUtf8(kHighPieces + ((c.code_point - kTwins) >> 10), out);
      AppendUtf8(kLowPieces + (c.code_point & 0x3ff), out);
    }
    text.remove_prefix(static_cast<size_t>(c.num_bytes));
  }
  return out;
}

Json MarkJson(const Json& value) {
  if (value.string() != nullptr) return Mark(*value.string());
  if (value.array() != nullptr) {
    JsonArray items;
    for (const Json& item : *value.array()) items.push_back(MarkJson(item));
    return items;
  }
  if (value.object() != nullptr) {
    JsonObject members;
    for (const auto& [name, member] : *value.object())
      members.push_back({Mark(name), MarkJson(member)});
    return members;
  }
  return value;
}

std::string Unmark(std::string_view rendered) {
  std::string out;
  while (!rendered.empty()) {
    const Utf8Char c = Front(rendered);
    size_t num_bytes = static_cast<size_t>(c.num_bytes);
    if (IsMarked(c.code_point)) {
      num_bytes = AppendUnmarked(rendered, out);
    } else {
      out.append(rendered.substr(0, num_bytes));
    }
    rendered.remove_prefix(num_bytes);
  }
  return out;
}

SpecialFinder::SpecialFinder(const Tokenizer& tokenizer) : first_bytes_(256, false) {
  std::set<size_t, std::greater<>> lengths;
  for (const SpecialName& special : tokenizer.specials()) {
    if (IsPlainWord(special.name) || Unmark(special.name) != special.name) continue;
    tokens_.emplace(special.name, special.token);
    lengths.insert(special.name.size());
    first_bytes_[static_cast<uint8_t>(special.name.front())] = true;
  }
  name_bytes_.assign(lengths.begin(), lengths.end());
}

std::optional<SpecialFinder::Match> SpecialFinder::LongestAt(std::string_view rest) const {
  if (!first_bytes_[static_cast<uint8_t>(rest.front())]) return std::nullopt;
  for (const size_t num_bytes : name_bytes_) {
    if (num_bytes > rest.size()) continue;
    // A mark within would make this differ from every name: names hold no marks.
    const auto found = tokens_.find(std::string(rest.substr(0, num_bytes)));
    if (found != tokens_.end()) return Match{found->second, num_bytes};
  }
  return std::nullopt;
}

std::vector<PromptPiece> SpecialFinder::Split(std::string_view rendered) const {
  std::vector<PromptPiece> pieces;
  std::string text;
  const auto end_text = [&] {
    if (!text.empty()) pieces.push_back({std::nullopt, std::exchange(text, {})});
  };
  while (!rendered.empty()) {
    const Utf8Char c = Front(rendered);
    size_t num_bytes = static_cast<size_t>(c.num_bytes);
    if (IsMarked(c.code_point)) {
      num_bytes = AppendUnmarked(rendered, text);
    } else if (const auto match = LongestAt(rendered)) {
      end_text();
      num_bytes = match->num_bytes;
      pieces.push_back({match->token, std::string(rendered.substr(0, num_bytes))});
    } else {
      text.append(rendered.substr(0, num_bytes));
    }
    rendered.remove_prefix(num_bytes);
  }
  end_text();
  return pieces;
}

}  // namespace hearth
