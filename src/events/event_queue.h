// SPDX-License-Identifier: Apache-2.0
// Events on their way from the engine's thread to the publisher's. The engine never waits: what
// finds no room is dropped and counted, and when there is room again all that is cached is told
// anew.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "events/block_event.h"
#include "kv/block_watch.h"
namespace hearth {

struct EventQueueCounts {
  size_t num_queued = 0;     // events that wait to be published
  uint64_t num_dropped = 0;  // events that found no room
  uint64_t num_retold = 0;   // times that everything was told anew
};

// Thread: as BlockWatch's; Take, counts and layout from any.
class EventQueue : public BlockWatch {
 public:
  // `notify` is called, on the engine's thread, when there is something to take.
  EventQueue(size_t max_queued, std::function<void()> notify)
      : max_queued_(max_queued), notify_(std::move(notify)) {}

  void Connect(const KvLayout& layout, std::function<void()> wake) override;
  void OnStored(std::string_view place, const WatchedBlock& block) override;
  void OnRemoved(std::string_view place, int group, const BlockKey& key) override;
  bool EndStep() override;
  void BeginAll() override;

  // The oldest, if there is one. Whoever takes the last after a loss has the engine tell all anew.
  std::optional<BlockEvents> Take();
  EventQueueCounts counts() const;
  KvLayout layout() const;

 private:
  const size_t max_queued_;  // events
  const std::function<void()> notify_;
  BlockEvents pending_;  // of the step under way; the engine thread's
  mutable Mutex mu_;
  std::deque<BlockEvents> queue_ HEARTH_GUARDED_BY(mu_);
  EventQueueCounts counts_ HEARTH_GUARDED_BY(mu_);
  bool has_lost_ HEARTH_GUARDED_BY(mu_) = false;
  KvLayout layout_ HEARTH_GUARDED_BY(mu_);
  std::function<void()> wake_ HEARTH_GUARDED_BY(mu_);
};

}  // namespace hearth
