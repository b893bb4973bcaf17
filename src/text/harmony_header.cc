// SPDX-License-Identifier: Apache-2.0
// Reads headers word by word. The rules for broken ones: the last channel that is one of the three
// wins, a recipient may stand anywhere, what is not understood is left out.
#include "text/harmony_header.h"

#include <algorithm>
#include <optional>

namespace hearth {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::optional<HarmonyChannel> ExactChannel(std::string_view word) {
  if (word == "analysis") return HarmonyChannel::kAnalysis;
  if (word == "commentary") return HarmonyChannel::kCommentary;
  if (word == "final") return HarmonyChannel::kFinal;
  return std::nullopt;
}

// "commentary?" and "--commentary" mean commentary.
std::optional<HarmonyChannel> NearChannel(std::string_view word) {
  while (!word.empty() && !IsLetter(word.front())) word.remove_prefix(1);
  while (!word.empty() && !IsLetter(word.back())) word.remove_suffix(1);
  return ExactChannel(word);
}

std::optional<Role> ExactRole(std::string_view word) {
  if (word == "assistant") return Role::kAssistant;
  if (word == "user") return Role::kUser;
  if (word == "system") return Role::kSystem;
  if (word == "developer") return Role::kDeveloper;
  return std::nullopt;
}

bool LooksLikeTool(std::string_view word) {
  return word.starts_with("functions.") || word.starts_with("browser.") ||
         word.starts_with("container.") || word == "python" || word == "browser";
}
bool LooksLikeType(std::string_view word) {
  return IsLetter(word.front()) && std::all_of(word.begin(), word.end(), [](char c) {
           return IsLetter(c) || (c >= '+' && c <= '9' && c != ',') || c == '_';
         });
}
bool IsRecipient(std::string_view word) { return word.starts_with("to=") && word.size() > 3; }

enum class Place : unsigned char { kPlain, kChannel, kConstrain };  // what stood before a word

}  // namespace

struct HeaderText::Word {
  Place place;
  uint32_t begin, end;
  std::string_view text;
  bool is_understood;
};
struct HeaderText::Words : std::vector<Word> {
  size_t num_channels = 0;
  uint32_t last_segment = 0;  // where the text after the last control token begins
};

namespace {

// Takes words one by one and keeps what they said.
class HeaderReader {
 public:
  HeaderReader(bool is_complete, bool has_recipient)
      : is_complete_(is_complete), has_recipient_(has_recipient) {}

  // The first word after <|start|>. `next` is the word after it, if any.
  bool ReadAuthor(std::string_view word, std::string_view next) {
    const size_t colon = word.find(':');
    if (const auto role = ExactRole(word.substr(0, colon))) {
      header.role = *role;
      if (colon != std::string_view::npos) header.name = word.substr(colon + 1);
      return true;
    }
    if (IsRecipient(word) || !(LooksLikeTool(word) || IsRecipient(next))) return false;
    header.role = Role::kTool;
    header.name = word;
    return true;
  }

  bool ReadWord(Place place, std::string_view word) {
    if (IsRecipient(word)) {
      header.recipient = word.substr(3);
    } else if (place == Place::kConstrain) {
      header.content_type = word;
      header.is_constrained = true;
    } else if (place == Place::kChannel) {
      const auto named = NearChannel(word);
      if (!named) return false;
      is_odd |= !ExactChannel(word);
      channel = named;
    } else {
      return ReadBare(word);
    }
    return true;
  }

  HarmonyHeader header;
  std::optional<HarmonyChannel> channel;
  bool is_odd = false;

 private:
  // A word that nothing announces. Without <|message|> it may as well begin the content, so it
  // counts only where a call was announced.
  bool ReadBare(std::string_view word) {
    const bool is_type = word == "json" || word == "code";
    if (!is_complete_ && !(has_recipient_ && (is_type || ExactChannel(word)))) return false;
    if (const auto named = ExactChannel(word); named && !channel) {
      is_odd = true;
      channel = named;
    } else if (!has_recipient_ && header.recipient.empty() && LooksLikeTool(word)) {
      header.recipient = word;
    } else if (header.content_type.empty() &&
               (is_type || (has_recipient_ && LooksLikeType(word)))) {
      header.content_type = word;
    } else {
      return false;
    }
    return true;
  }

  const bool is_complete_;
  const bool has_recipient_;
};

}  // namespace

void HeaderText::Clear(bool is_role_known) {
  is_role_known_ = is_role_known;
  text_.clear();
  tokens_.clear();
}

void HeaderText::Add(Kind kind, std::string_view bytes) {
  const auto begin = static_cast<uint32_t>(text_.size());
  if (kind == Kind::kText) text_ += bytes;
  tokens_.push_back({kind, begin, static_cast<uint32_t>(text_.size())});
}

HeaderText::Words HeaderText::Split() const {
  Words words;
  std::vector<std::pair<uint32_t, Place>> cuts = {{0, Place::kPlain}};
  for (const Piece& piece : tokens_) {
    if (piece.kind == Kind::kChannel) cuts.emplace_back(piece.begin, Place::kChannel);
    if (piece.kind == Kind::kConstrain) cuts.emplace_back(piece.begin, Place::kConstrain);
  }
  const auto size = static_cast<uint32_t>(text_.size());
  for (size_t i = 0; i < cuts.size(); ++i) {
    uint32_t at = cuts[i].first;
    Place place = cuts[i].second;
    if (place == Place::kChannel) ++words.num_channels;
    words.last_segment = at;
    const uint32_t end = i + 1 < cuts.size() ? cuts[i + 1].first : size;
    while (at < end) {
      uint32_t stop = at;
      while (stop < end && !IsSpace(text_[stop])) ++stop;
      if (stop > at) {
        words.push_back({place, at, stop, std::string_view(text_).substr(at, stop - at), false});
        place = Place::kPlain;
      }
      at = stop + 1;
    }
  }
  return words;
}

HeaderText::Reading HeaderText::Read(bool is_complete, HarmonyRepairs& repairs) const {
  Reading reading;
  Words words = Split();
  const bool has_recipient =
      std::any_of(words.begin(), words.end(), [](const Word& w) { return IsRecipient(w.text); });
  HeaderReader reader(is_complete, has_recipient);
  reader.is_odd = words.num_channels > 1;
  size_t i = 0;
  if (!words.empty() && words[0].place == Place::kPlain) {
    const bool has_next = words.size() > 1 && words[1].place == Place::kPlain;
    words[0].is_understood =
        is_role_known_
            ? words[0].text == "assistant"  // the author of the prompt once more
            : reader.ReadAuthor(words[0].text, has_next ? words[1].text : std::string_view());
    if (words[0].is_understood) i = 1;
  }
  for (; i < words.size(); ++i) {
    Word& word = words[i];
    // Content may follow so closely that it shares a word: to=functions.f{"a":1}
    const bool may_end = !is_complete && word.begin >= words.last_segment;
    const size_t cut = may_end ? word.text.find_first_of("{[") : std::string_view::npos;
    word.is_understood = reader.ReadWord(word.place, word.text.substr(0, cut));
    if (may_end && word.is_understood && cut != std::string_view::npos) {
      reading.content = std::string_view(text_).substr(word.begin + cut);
      break;
    }
    if (may_end && !word.is_understood && word.place == Place::kPlain) {
      reading.content = std::string_view(text_).substr(word.begin);
      break;
    }
    if (!word.is_understood) ++repairs.unknown_words;
  }
  reading.header = std::move(reader.header);
  const HarmonyHeader& header = reading.header;
  reading.says_something = reader.channel || !header.recipient.empty() || !reading.content.empty();
  if (reader.is_odd) ++repairs.odd_channels;
  if (reader.channel) {
    reading.header.channel = *reader.channel;
  } else if (header.role == Role::kAssistant) {
    // A call without a channel is still a call; anything else is for the user to see.
    reading.header.channel =
        header.recipient.empty() ? HarmonyChannel::kFinal : HarmonyChannel::kCommentary;
    if (is_complete || reading.says_something) ++repairs.missing_channels;
  }
  CountTokens(words, reading);
  return reading;
}

// A token belongs to the header if any word it touches was understood, or if it touches none.
void HeaderText::CountTokens(const Words& words, Reading& reading) const {
  const size_t content_begin = text_.size() - reading.content.size();
  size_t first = 0;
  for (const Piece& piece : tokens_) {
    if (piece.end > content_begin && piece.end > piece.begin) {
      ++reading.content_tokens;
      continue;
    }
    while (first < words.size() && words[first].end <= piece.begin) ++first;
    bool touches = false;
    bool is_understood = false;
    for (size_t i = first; i < words.size() && words[i].begin < piece.end; ++i) {
      touches = true;
      is_understood |= words[i].is_understood;
    }
    ++(touches && !is_understood ? reading.dropped_tokens : reading.header_tokens);
  }
}

}  // namespace hearth
