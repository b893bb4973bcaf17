// SPDX-License-Identifier: Apache-2.0
// The stream that subscribers see: numbered batches, the last of them kept for those who missed
// some, and everything at once for those who missed more.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/block_event.h"
#include "events/block_mirror.h"
#include "events/event_wire.h"
#include "kv/layout.h"
namespace hearth {

struct EventLogOptions {
  WireOptions wire = {};
  // Of the first batch. Grows from one process to the next at the same address, so that nobody
  // takes the new stream for the old one's continuation.
  uint64_t first_number = 0;
  size_t max_kept = 4096;  // batches, and
  size_t max_kept_bytes = size_t{16} << 20;
};

struct EventCounts {
  uint64_t num_batches = 0, num_stored = 0, num_removed = 0;  // published
  uint64_t num_replays = 0, num_full_replays = 0;             // answered; those with everything
  size_t num_blocks = 0;                                      // that subscribers know of now
};

struct NumberedBatch {
  uint64_t number = 0;
  std::shared_ptr<const std::string> payload;
};

// Thread: one.
class EventLog {
 public:
  explicit EventLog(const EventLogOptions& options)
      : options_(options), next_number_(options.first_number) {}

  // The first batch: nothing is cached yet.
  NumberedBatch Begin(double now_s);
  // The batch that tells of these, if there is anything new in them.
  std::optional<NumberedBatch> Add(const BlockEvents& events, const KvLayout& layout, double now_s);
  // A batch without events: whoever missed the last one sees a gap.
  NumberedBatch Beat(double now_s);
  // What a subscriber that has everything before `from` misses. When that is not kept any more, or
  // was never sent: one batch with everything, under the last number.
  std::vector<NumberedBatch> Replay(uint64_t from, double now_s);

  const EventCounts& counts() const { return counts_; }

 private:
  BlockEvents NewOf(const BlockEvents& events);
  NumberedBatch Number(const BlockEvents& events, double now_s);

  const EventLogOptions options_;
  uint64_t next_number_;
  KvLayout layout_;
  BlockMirror mirror_;
  std::deque<NumberedBatch> kept_;  // without gaps, up to the last
  size_t kept_bytes_ = 0;
  EventCounts counts_;
};

}  // namespace hearth
