// SPDX-License-Identifier: Apache-2.0
// The ids of server-sent events as clients send them back: whatever it is, it is read as an id that
// a stream could have had or not at all, and a stream that goes on after it says the rest and
// nothing else.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/access/reply_origin.h"
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

// Of twenty events a client that has some gets the others.
void CheckRest(const EventCursor& seen) {
  constexpr int kEvents = 20;
  EventIds ids("sealed", 1, seen);
  std::string out;
  for (int i = 0; i < kEvents; ++i) out += ids.NumberWhole("data: {}\n\n");
  const int64_t had = seen.num_whole < kEvents ? seen.num_whole : kEvents;
  if (Count(out, "data: ") != kEvents - had) Report("not the rest");
  if (Count(out, "id: ") != kEvents - had) Report("an event without an id");
  if (ids.num_dropped() != had) Report("num_dropped");
}

void CheckId(const std::string& text) {
  static const OriginSeal seal(NewCipherKey());
  const auto id = ReadEventId(text);
  if (!id) return;
  if (text.size() > kMaxEventIdBytes) Report("longer than any");
  if (text.find(id->sealed) != 0) Report("the origin is not what it begins with");
  if (id->cursor.num_whole < 0) Report("less than none");
  for (const int64_t count : id->cursor.num_chosen) {
    if (count < 0) Report("less than none of a choice");
  }
  if (id->cursor.num_cached < -1) Report("less than no tokens");
  if (const auto origin = seal.Open(id->sealed, "a")) {
    // The fuzzer watches comparisons and may repeat what we made ourselves.
    if (seal.Seal(*origin, "a") != id->sealed) Report("what nobody sealed is opened");
  }
  if (id->cursor.num_chosen.size() <= 1) CheckRest(id->cursor);
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hearth::CheckId(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
