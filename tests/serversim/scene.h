// SPDX-License-Identifier: Apache-2.0
// What a seed means: a server's settings, its troubles, and who comes to ask what.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "asks.h"
#include "server/access/rate_limiter.h"
#include "sim_os.h"
namespace hearth::testing {

inline constexpr int kNumKeys = 3;

// One connection and how its client behaves.
struct Visitor {
  enum class Manner : uint8_t {
    kPolite,
    kSlowReader,  // takes some bytes now and then
    kLeaver,      // closes at some time
    kHalfBody,    // never sends the last bytes of its last request
  };
  int key = 0;
  Manner manner = Manner::kPolite;
  std::vector<Ask> asks;
  int64_t begins_us = 0;
  int64_t leaves_us = -1;  // after its beginning
  bool pipelines = false;  // does not wait for an answer before it asks again
  size_t send_piece = 0, read_piece = 0;
  int64_t tick_us = 0;  // between two looks at its socket
  bool is_polite() const { return manner == Manner::kPolite; }
};

struct Scene {
  SimOsOptions os;
  int full_blocks = 0, max_sequences = 0, max_step_tokens = 0;
  int64_t step_us = 0, token_us = 0;  // how long steps take
  double fail_share = 0;              // of steps
  int64_t budget_bytes = 0;
  size_t max_unread = 0, max_unsent_bytes = 0;
  int max_queued = 0;  // requests that wait for the engine
  int num_lanes = 1;
  KeyLimits limits;
  int64_t drain_at_us = -1;  // in the middle; -1: when all have gone
  int64_t drain_bound_us = 0;
  std::vector<Visitor> visitors;
};

Scene SceneOf(uint64_t seed);

}  // namespace hearth::testing
