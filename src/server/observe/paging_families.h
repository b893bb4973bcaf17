// SPDX-License-Identifier: Apache-2.0
// Experts that come from disk, in metrics and in /status.
#pragma once
#include <cstdint>

#include "base/json.h"
namespace hearth {

class MetricFamilies;

// backend/paging_counts.h's, for a room that does not see backends.
struct PagingState {
  int experts = 0, frames = 0;  // no frames: all are in memory
  int64_t expert_bytes = 0, resident_bytes = 0, most_bytes = 0;
  uint64_t needed = 0, hits = 0, ahead_hits = 0, bytes_read = 0, errors = 0;
  double read_s = 0, waited_s = 0;
};

// Nothing, and null, when all experts are in memory.
void AddPagingFamilies(const PagingState& state, MetricFamilies& out);
Json PagingAsJson(const PagingState& state);

}  // namespace hearth
