// SPDX-License-Identifier: Apache-2.0
// Requests that were recorded, as asks of a fleet.
#include <algorithm>
#include <map>
#include <optional>

#include "base/json.h"
#include "base/mix.h"
#include "plan/fleet_load.h"

namespace hearth {
namespace {

constexpr int kMooncakeUnit = 512;
constexpr int64_t kMostTokens = 1 << 24;
// A prompt that goes on with a chat has all of it but what a template leaves out.
constexpr int kTurnSlack = 64;

// Calls `read` with each line that is not empty; an error names the line.
template <class Read>
Status EachLine(std::string_view text, const Read& read) {
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<Json> json = ParseJson(line);
    const Status status = json.ok() ? read(*json) : json.status();
    if (!status.ok()) return Error(Code::kInvalid, "line %d: %s", number, status.message().c_str());
  }
  return Status();
}

Result<int64_t> WholeIn(const Json& object, const char* name, int64_t least, int64_t most) {
  const Json* value = object.Find(name);
  const std::optional<double> number = value == nullptr ? std::nullopt : value->number();
  if (!number || !(*number >= static_cast<double>(least)) ||
      !(*number <= static_cast<double>(most))) {
    return Error(Code::kInvalid, "expected a number \"%s\" from %lld to %lld", name,
                 static_cast<long long>(least), static_cast<long long>(most));
  }
  return static_cast<int64_t>(*number);
}

// The number in text[at, at + length), if that is nothing but digits.
std::optional<int> Digits(std::string_view text, size_t at, size_t length) {
  int value = 0;
  if (at + length > text.size()) return std::nullopt;
  for (const char c : text.substr(at, length)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return value;
}

// "2026-11-17T12:00:00.123Z" in microseconds since some day.
std::optional<int64_t> ParseTime(std::string_view text) {
  const std::optional<int> year = Digits(text, 0, 4), month = Digits(text, 5, 2),
                           day = Digits(text, 8, 2), hour = Digits(text, 11, 2),
                           minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  int64_t us = 1'000'000ll * (3600 * *hour + 60 * *minute + *second);
  int64_t unit = 100'000;
  for (size_t at = 20; text.size() > 19 && text[19] == '.' && unit > 0; ++at, unit /= 10) {
    const std::optional<int> digit = Digits(text, at, 1);
    if (!digit) break;
    us += unit * *digit;
  }
  // Days since the beginning of March of year 0: months before it belong to the year before.
  const int64_t years = *year - (*month <= 2 ? 1 : 0);
  const int64_t days = 365 * years + years / 4 - years / 100 + years / 400 +
                       (153 * (*month + (*month > 2 ? -3 : 9)) + 2) / 5 + *day - 1;
  return us + days * 86'400'000'000;
}

Result<int64_t> TimeOf(const Json& line) {
  const Json* value = line.Find("time");
  const std::string* text = value == nullptr ? nullptr : value->string();
  const std::optional<int64_t> time = text == nullptr ? std::nullopt : ParseTime(*text);
  if (!time) return Error(Code::kInvalid, "expected a \"time\" such as 2026-11-17T12:00:00Z");
  return *time;
}

// Chats that a log tells of, by key.
class LogReader {
 public:
  Status Read(const Json& line) {
    const Json* event = line.Find("event");
    if (event == nullptr || event->string() == nullptr || *event->string() != "request") {
      return Status();
    }
    const Json* choices = line.Find("choices");
    const JsonArray* all = choices == nullptr ? nullptr : choices->array();
    if (all == nullptr || all->empty()) return Status();  // it never came to the engine
    HEARTH_ASSIGN(const int64_t ended_us, TimeOf(line));
    HEARTH_ASSIGN(const int64_t prompt, WholeIn(all->front(), "prompt_tokens", 0, kMostTokens));
    HEARTH_ASSIGN(const int64_t cached, WholeIn(all->front(), "cached_tokens", 0, kMostTokens));
    HEARTH_ASSIGN(const int64_t reply, WholeIn(all->front(), "generated_tokens", 0, kMostTokens));
    const Json* seconds = line.Find("seconds");
    const double took_s = seconds == nullptr ? 0 : seconds->number().value_or(0);
    if (prompt < 1 || reply < 1) return Status();
    const Json* key = line.Find("key");
    const std::string name =
        key == nullptr || key->string() == nullptr ? std::string() : *key->string();
    Add(name, ended_us - static_cast<int64_t>(1e6 * took_s), static_cast<int>(prompt),
        static_cast<int>(cached), static_cast<int>(reply));
    return Status();
  }
  std::vector<FleetAsk> asks;

 private:
  struct Chat {
    uint64_t session = 0;
    int length = 0, shared = 0;
  };
  void Add(const std::string& key, int64_t at_us, int prompt, int cached, int reply) {
    std::vector<Chat>& chats = chats_[key];
    uint64_t app = kGoldenRatio;
    for (const char c : key) app = MixBits(app ^ static_cast<unsigned char>(c));
    const auto can_follow = [&](const Chat& chat) {
      return cached > chat.shared && cached <= chat.length + kTurnSlack && chat.length <= prompt;
    };
    // Of those that it can follow the longest: a shorter one would have been found further.
    const Chat* longest = nullptr;
    for (const Chat& chat : chats) {
      if (can_follow(chat) && (longest == nullptr || chat.length > longest->length))
        longest = &chat;
    }
    Chat chat{MixBits(app + ++num_chats_), prompt + reply, cached};
    if (longest != nullptr) chat = {longest->session, prompt + reply, longest->shared};
    if (longest != nullptr) chats.erase(chats.begin() + (longest - chats.data()));
    chats.push_back(chat);
    FleetAsk ask;
    ask.at_us = at_us;
    ask.key = chat.session;
    ask.content = {app, chat.session, chat.shared, nullptr, 0};
    ask.prompt = prompt;
    ask.reply = reply;
    asks.push_back(std::move(ask));
  }
  std::map<std::string, std::vector<Chat>> chats_;
  uint64_t num_chats_ = 0;
};

Result<std::vector<FleetAsk>> FromStart(std::vector<FleetAsk> asks, const char* what) {
  if (asks.empty()) return Error(Code::kInvalid, "no requests in the %s", what);
  int64_t first = asks.front().at_us;
  for (const FleetAsk& ask : asks) first = std::min(first, ask.at_us);
  for (FleetAsk& ask : asks) ask.at_us -= first;
  return asks;
}

}  // namespace

Result<std::vector<FleetAsk>> ReadMooncake(std::string_view text) {
  std::vector<FleetAsk> asks;
  HEARTH_TRY(EachLine(text, [&](const Json& line) -> Status {
    FleetAsk ask;
    HEARTH_ASSIGN(const int64_t at_ms, WholeIn(line, "timestamp", 0, int64_t{1} << 48));
    HEARTH_ASSIGN(const int64_t prompt, WholeIn(line, "input_length", 1, kMostTokens));
    HEARTH_ASSIGN(const int64_t reply, WholeIn(line, "output_length", 1, kMostTokens));
    const Json* ids = line.Find("hash_ids");
    if (ids == nullptr || ids->array() == nullptr) {
      return Error(Code::kInvalid, "expected a list \"hash_ids\"");
    }
    auto names = std::make_shared<std::vector<uint64_t>>();
    for (const Json& id : *ids->array()) {
      const std::optional<int64_t> number = id.integer();
      if (!number) return Error(Code::kInvalid, "\"hash_ids\" has something that is no number");
      names->push_back(MixBits(static_cast<uint64_t>(*number) + kGoldenRatio));
    }
    // The last may be of fewer tokens than 512, and then is nobody else's beginning.
    ask.at_us = 1000 * at_ms;
    ask.content.session = MixBits(asks.size() + 1);
    ask.key =
        names->empty() ? ask.content.session : (*names)[std::min<size_t>(1, names->size() - 1)];
    ask.content.names = std::move(names);
    ask.content.unit = kMooncakeUnit;
    ask.prompt = static_cast<int>(prompt);
    ask.reply = static_cast<int>(reply);
    asks.push_back(std::move(ask));
    return Status();
  }));
  return FromStart(std::move(asks), "trace");
}

Result<std::vector<FleetAsk>> ReadRequestLog(std::string_view text) {
  LogReader reader;
  HEARTH_TRY(EachLine(text, [&](const Json& line) { return reader.Read(line); }));
  return FromStart(std::move(reader.asks), "request log (`hearth serve --log FILE`)");
}

}  // namespace hearth
