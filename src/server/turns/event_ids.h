// SPDX-License-Identifier: Apache-2.0
// The `id:` of each server-sent event of a reply: what the reply came from, and how many events
// came before. A client that lost its connection names the last one it has, and gets the rest. To
// it an id is a word without a meaning: all of it is encrypted and authenticated (siv_seal.h).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/reply_origin.h"
#include "server/access/siv_seal.h"
namespace hearth {

// How much of a reply a client has. What several choices say is interleaved as it comes, so each
// of them is counted on its own.
struct EventCursor {
  int64_t num_whole = 0;            // events of the reply as a whole: its beginning and its end
  std::vector<int64_t> num_chosen;  // events of each choice
  int num_cached = -1;              // tokens of the prompt that were found in a cache; -1: unknown
  bool operator==(const EventCursor&) const = default;
};

// What is in an id.
struct EventId {
  ReplyOrigin origin;
  EventCursor cursor;
};
inline constexpr size_t kMaxEventIdBytes = 4096;

// The ids of one reply's events. The same event has the same id, also from another process with the
// same key. Ids of one reply have one length, whatever they say. Thread: any.
class EventNames {
 public:
  EventNames(SivSeal seal, const ReplyOrigin& origin, std::string tenant);
  std::string At(const EventCursor& cursor) const;

 private:
  const SivSeal seal_;
  const std::string tenant_, beginning_;
};

// Of an id as a client sent it: nothing unless EventNames with this key made it for this tenant.
std::optional<EventId> ReadEventId(std::string_view text, const SivSeal& seal,
                                   std::string_view tenant);

// Numbers the events of one stream as they are written. Thread: one at a time.
class EventIds {
 public:
  // Gives none and drops none.
  EventIds() = default;
  // Drops what `seen` says that the client has. Null names are none.
  EventIds(std::shared_ptr<const EventNames> names, size_t num_choices, EventCursor seen);

  // Of events that were written, which are of the reply as a whole or of one choice: those the
  // client does not have, with their ids. Comments have none, and pass.
  std::string NumberWhole(const std::string& events) { return Number(kWhole, events); }
  std::string NumberChosen(int choice, const std::string& events) { return Number(choice, events); }
  void set_cached(int num_cached) { now_.num_cached = num_cached; }
  // Of those that were handed in, the ones that the client had.
  int64_t num_dropped() const { return num_dropped_; }

 private:
  static constexpr int kWhole = -1;
  std::string Number(int choice, const std::string& events);
  std::string Next(int choice);

  std::shared_ptr<const EventNames> names_;  // null: there are no ids
  EventCursor seen_, now_;
  int64_t num_dropped_ = 0;
};

// `id: …`, a line of an event.
std::string EventIdLine(const EventNames& names, const EventCursor& cursor);

}  // namespace hearth
