// SPDX-License-Identifier: Apache-2.0
#include "server/turns/event_ids.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

// One byte of version, what the reply came from, four bytes for each number and two for how many
// choices are counted; then zeros up to a multiple of three, so that the text has no padding. Every
// number has its place and its size: an id tells nothing by its length.
constexpr char kVersion = 2;
constexpr size_t kCountBytes = 4, kChoicesBytes = 2;
constexpr size_t kOriginAt = 1, kCachedAt = kOriginAt + kOriginBytes;
constexpr size_t kWholeAt = kCachedAt + kCountBytes, kChoicesAt = kWholeAt + kCountBytes;
constexpr size_t kChosenAt = kChoicesAt + kChoicesBytes;
// What is not known. More events than this no reply has: each is a token at least.
constexpr int64_t kMostEvents = std::numeric_limits<uint32_t>::max();

size_t PaddedTo(size_t size) {
  return (size + SivSeal::kExtraBytes + 2) / 3 * 3 - SivSeal::kExtraBytes;
}

void Put(int64_t number, size_t num_bytes, std::string& out) {
  HEARTH_CHECK(number >= 0 && number <= kMostEvents);
  for (size_t i = 0; i < num_bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

int64_t Take(std::string_view from, size_t at, size_t num_bytes) {
  int64_t number = 0;
  for (size_t i = 0; i < num_bytes; ++i) {
    number |= int64_t{static_cast<unsigned char>(from[at + i])} << (8 * i);
  }
  return number;
}

}  // namespace

EventNames::EventNames(SivSeal seal, const ReplyOrigin& origin, std::string tenant)
    : seal_(std::move(seal)), tenant_(std::move(tenant)), beginning_(kVersion + AsBytes(origin)) {}

std::string EventNames::At(const EventCursor& cursor) const {
  std::string content = beginning_;
  Put(cursor.num_cached < 0 ? kMostEvents : cursor.num_cached, kCountBytes, content);
  Put(cursor.num_whole, kCountBytes, content);
  Put(static_cast<int64_t>(cursor.num_chosen.size()), kChoicesBytes, content);
  for (const int64_t count : cursor.num_chosen) Put(count, kCountBytes, content);
  content.resize(PaddedTo(content.size()));
  return seal_.Seal(content, tenant_);
}

std::optional<EventId> ReadEventId(std::string_view text, const SivSeal& seal,
                                   std::string_view tenant) {
  if (text.size() > kMaxEventIdBytes) return std::nullopt;
  const std::optional<std::string> content = seal.Open(text, tenant);
  if (!content || content->size() < kChosenAt || content->front() != kVersion) return std::nullopt;
  const auto num_chosen = static_cast<size_t>(Take(*content, kChoicesAt, kChoicesBytes));
  if (content->size() != PaddedTo(kChosenAt + num_chosen * kCountBytes)) return std::nullopt;
  const std::string_view view = *content;
  EventId id;
  auto origin = ReplyOriginFrom(view.substr(kOriginAt, kOriginBytes));
  if (!origin) return std::nullopt;
  id.origin = *std::move(origin);
  const int64_t cached = Take(view, kCachedAt, kCountBytes);
  if (cached != kMostEvents && cached > std::numeric_limits<int>::max()) return std::nullopt;
  id.cursor.num_cached = cached == kMostEvents ? -1 : static_cast<int>(cached);
  id.cursor.num_whole = Take(view, kWholeAt, kCountBytes);
  for (size_t i = 0; i < num_chosen; ++i) {
    id.cursor.num_chosen.push_back(Take(view, kChosenAt + i * kCountBytes, kCountBytes));
  }
  return id;
}

std::string EventIdLine(const EventNames& names, const EventCursor& cursor) {
  return "id: " + names.At(cursor) + "\n";
}

EventIds::EventIds(std::shared_ptr<const EventNames> names, size_t num_choices, EventCursor seen)
    : names_(std::move(names)), seen_(std::move(seen)) {
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
  return EventIdLine(*names_, now_);
}

std::string EventIds::Number(int choice, const std::string& events) {
  if (names_ == nullptr) return events;
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
