// SPDX-License-Identifier: Apache-2.0
// The `id:` of each server-sent event of a reply: what the reply came from, and how many events
// came before. A client that lost its connection names the last one it has, and gets the rest.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

// How much of a reply a client has. What several choices say is interleaved as it comes, so each
// of them is counted on its own.
struct EventCursor {
  int64_t num_whole = 0;            // events of the reply as a whole: its beginning and its end
  std::vector<int64_t> num_chosen;  // events of each choice
  int num_cached = -1;              // tokens of the prompt that were found in a cache; -1: unknown
};

// An id as a client sent it: `SEALED.EVENTS[.CACHED]`, EVENTS being one number, or with several
// choices `WHOLE-FIRST-SECOND-…`.
struct EventId {
  std::string_view sealed;
  EventCursor cursor;
};
// Nothing for what no reply has. Looks at nothing but the form; the time it takes is linear.
std::optional<EventId> ReadEventId(std::string_view text);
inline constexpr size_t kMaxEventIdBytes = 2048;

// Numbers the events of one stream as they are written. Thread: one at a time.
class EventIds {
 public:
  // Gives none and drops none.
  EventIds() = default;
  // Drops what `seen` says that the client has.
  EventIds(std::string sealed, size_t num_choices, EventCursor seen);

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

  std::string sealed_;  // empty: there are no ids
  EventCursor seen_, now_;
  int64_t num_dropped_ = 0;
};

}  // namespace hearth
