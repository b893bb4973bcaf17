// SPDX-License-Identifier: Apache-2.0
// What GET /status of a server said, as `hearth top` needs it. The server may be of another
// version, or no friend: what is missing or of another kind reads as nothing, and what is long is
// cut.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
namespace hearth {

struct TopSequence {
  std::string request_id, key, state, priority;
  double age_s = 0, tokens_per_s = 0;
  int64_t prompt = 0, cached = 0, computed = 0, generated = 0, preempted = 0;
};

// Blocks of K and V of one group of layers.
struct TopBlocks {
  std::string group;
  int64_t total = 0, held = 0, cached = 0, block_bytes = 0;
};

// The cache below memory; without room there is none.
struct TopTier {
  std::string name;
  int64_t used_bytes = 0, capacity_bytes = 0, hits = 0, misses = 0, errors = 0;
  int64_t late = 0, slower = 0;  // prompts that did without it: it was not in time, or not worth it
};

struct TopEnds {
  int64_t status = 0, count = 0;
  std::string code;
};

struct TopStatus {
  std::string version, model, state;
  double uptime_s = 0, snapshot_age_s = 0;
  int64_t max_context = 0, resident_bytes = 0, connections = 0, refusals = 0;
  int64_t running = 0, max_running = 0, paused = 0, preempted = 0, preemptions = 0;
  int64_t waiting = 0, max_waiting = 0, waiting_tokens = 0, refused = 0;
  double decode_per_s = 0, prefill_per_s = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, drafted = 0, accepted = 0;
  int64_t num_steps = 0, mask_steps = 0, mask_waits = 0, step_failures = 0;
  double step_ms = 0, step_tokens = 0, step_p50_ms = 0, step_p99_ms = 0, itl_target_ms = 0;
  std::vector<TopBlocks> kv;
  std::vector<TopTier> tiers;
  std::vector<TopEnds> ends;
  std::vector<TopSequence> sequences;
};

TopStatus ReadTopStatus(const Json& json);

}  // namespace hearth
