// SPDX-License-Identifier: Apache-2.0
// What a replica does for a fleet, as metrics: blocks that routers are told of, and batch jobs.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
namespace hearth {

class MetricFamilies;

struct KvEventCounts {
  uint64_t batches = 0, stored = 0, removed = 0;  // published since the start
  uint64_t dropped = 0, retold = 0;
  uint64_t replays = 0, full_replays = 0;
  size_t queued = 0, blocks = 0;  // now
};

struct BatchCounts {
  std::vector<std::pair<std::string, int64_t>> jobs = {};  // by status; of all replicas
  int64_t waiting = 0, running = 0;    // lines now: of all replicas; of this one
  uint64_t completed = 0, failed = 0;  // lines of this replica, since its start
  bool is_held = false;                // the store fails, such as on a full disk: lines wait
};

void AddKvEvents(const KvEventCounts& counts, MetricFamilies& out);
void AddBatches(const BatchCounts& counts, MetricFamilies& out);

}  // namespace hearth
