// SPDX-License-Identifier: Apache-2.0
// Plays a scene: the visitors come, ask, read and leave under the simulation's clock, and every
// answer is judged. docs/simulation.md lists the promises.
#pragma once
#include <cstdint>
#include <string>

namespace hearth::testing {

// What the seeds met, to show that the promises were put to the test.
struct PlayCounts {
  int64_t asks = 0, whole = 0, streamed = 0, refused = 0, failed = 0, unanswered = 0, left = 0;
  int64_t stored = 0, background = 0, cancelled = 0, cut = 0, drained = 0, failed_steps = 0;
  int64_t store_failures = 0, preempted = 0, switches = 0;
  void Add(const PlayCounts& other);
};

struct PlayResult {
  std::string failure;  // the first promise that was broken; empty: all were kept
  uint64_t digest = 0;  // of everything that happened, in order
  int64_t us = 0;       // that passed
  PlayCounts counts;
};

PlayResult Play(uint64_t seed, bool is_tracing = false);

}  // namespace hearth::testing
