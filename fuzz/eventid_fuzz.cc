// SPDX-License-Identifier: Apache-2.0
// The ids of server-sent events as clients send them back: whatever it is, it is read as an id that
// a stream could have had or not at all, and a stream that goes on after it says the rest and
// nothing else.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/fresh_random.h"
#include "server/turns/event_ids.h"

namespace hearth {
namespace {

[[noreturn]] void Report(const char* wrong) {
  std::fprintf(stderr, "eventid_fuzz: %s\n", wrong);
  std::abort();
}

int Count(const std::string& text, const char* what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

const ReplyOrigin kOrigin{"0123456789abcdef01234567", 5, 77, {1, 2}, 3};

const SivSeal& Seal() {
  static const SivSeal seal = [] {
    SivSeal::Key key;
    FillRandom(key);
    return SivSeal(key);
  }();
  return seal;
}

// Of twenty events a client that has some gets the others.
void CheckRest(const EventCursor& seen) {
  constexpr int kEvents = 20;
  static const auto names = std::make_shared<const EventNames>(Seal(), kOrigin, "a");
  EventIds ids(names, 1, seen);
  std::string out;
  for (int i = 0; i < kEvents; ++i) out += ids.NumberWhole("data: {}\n\n");
  const int64_t had = seen.num_whole < kEvents ? seen.num_whole : kEvents;
  if (Count(out, "data: ") != kEvents - had) Report("not the rest");
  if (Count(out, "id: ") != kEvents - had) Report("an event without an id");
  if (ids.num_dropped() != had) Report("num_dropped");
}

void CheckCursor(const EventCursor& cursor) {
  if (cursor.num_whole < 0) Report("less than none");
  for (const int64_t count : cursor.num_chosen) {
    if (count < 0) Report("less than none of a choice");
  }
  if (cursor.num_cached < -1) Report("less than no tokens");
  if (cursor.num_chosen.size() <= 1) CheckRest(cursor);
}

void CheckId(const std::string& text) {
  const auto id = ReadEventId(text, Seal(), "a");
  if (!id) return;
  // The fuzzer watches comparisons and may repeat what we made ourselves.
  if (EventNames(Seal(), id->origin, "a").At(id->cursor) != text)
    Report("what nobody made is read");
  CheckCursor(id->cursor);
}

// The same bytes as the content of an id, which is what is left to read once it is decrypted.
void CheckContent(const std::string& content) {
  if (content.empty() || content.size() > kMaxEventIdBytes / 2) return;
  const auto id = ReadEventId(Seal().Seal(content, "a"), Seal(), "a");
  if (id) CheckCursor(id->cursor);
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  hearth::CheckId(text);
  hearth::CheckContent(text);
  return 0;
}
