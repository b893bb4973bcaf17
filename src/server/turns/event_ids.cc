// SPDX-License-Identifier: Apache-2.0
#include "server/turns/event_ids.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hearth {
namespace {

// More events than any reply has.
constexpr int64_t kMostEvents = int64_t{1} << 40;

std::optional<int64_t> ReadCount(std::string_view text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || at != end) return std::nullopt;
  if (number < 0 || number > kMostEvents) return std::nullopt;
  return number;
}

std::optional<std::vector<int64_t>> ReadCounts(std::string_view text) {
  std::vector<int64_t> counts;
  while (true) {
    const size_t end = std::min(text.find('-'), text.size());
    const auto count = ReadCount(text.substr(0, end));
    if (!count) return std::nullopt;
    counts.push_back(*count);
    if (end == text.size()) return counts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::optional<EventId> ReadEventId(std::string_view text) {
  if (text.size() > kMaxEventIdBytes) return std::nullopt;
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  EventId id;
  id.sealed = text.substr(0, dot);
  std::string_view rest = text.substr(dot + 1);
  const size_t second = rest.find('.');
  if (second != std::string_view::npos) {
    const auto cached = ReadCount(rest.substr(second + 1));
    if (!cached || *cached > INT32_MAX) return std::nullopt;
    id.cursor.num_cached = static_cast<int>(*cached);
    rest = rest.substr(0, second);
  }
  auto counts = ReadCounts(rest);
  if (!counts) return std::nullopt;
  // Of one choice all events have one order.
  if (counts->size() == 1) {
    id.cursor.num_whole = counts->front();
  } else {
    id.cursor.num_whole = counts->front();
    id.cursor.num_chosen.assign(counts->begin() + 1, counts->end());
  }
  return id;
}

EventIds::EventIds(std::string sealed, size_t num_choices, EventCursor seen)
    : sealed_(std::move(sealed)), seen_(std::move(seen)) {
  if (num_choices > 1) now_.num_chosen.assign(num_choices, 0);
  seen_.num_chosen.resize(now_.num_chosen.size());
}

std::string EventIds::Next(int choice) {
  const bool is_whole = choice == kWhole || now_.num_chosen.empty();
  int64_t& count = is_whole ? now_.num_whole : now_.num_chosen[static_cast<size_t>(choice)];
  const int64_t seen = is_whole ? seen_.num_whole : seen_.num_chosen[static_cast<size_t>(choice)];
  if (++count <= seen) {
    ++num_dropped_;
    return "";
  }
  std::string id = "id: " + sealed_ + "." + std::to_string(now_.num_whole);
  for (const int64_t each : now_.num_chosen) id += "-" + std::to_string(each);
  if (now_.num_cached >= 0) id += "." + std::to_string(now_.num_cached);
  return id + "\n";
}

std::string EventIds::Number(int choice, const std::string& events) {
  if (sealed_.empty()) return events;
  std::string out;
  for (size_t at = 0; at < events.size();) {
    // An event ends with an empty line, and has none inside.
    const size_t blank = events.find("\n\n", at);
    const size_t end = blank == std::string::npos ? events.size() : blank + 2;
    const std::string_view event = std::string_view(events).substr(at, end - at);
    at = end;
    if (event.starts_with(':')) {
      out += event;
      continue;
    }
    const std::string id = Next(choice);
    if (id.empty()) continue;
    out += id;
    out += event;
  }
  return out;
}

}  // namespace hearth
