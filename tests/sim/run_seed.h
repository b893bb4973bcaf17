// SPDX-License-Identifier: Apache-2.0
// One seed of one family of scenarios, played and judged.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "sim/simulation.h"
namespace hearth::testing {

enum class Family : uint8_t {
  kRandom,
  kStarvation,
  kLongPrompt,
  kChat,
  kQuiet,
  kShare,
  kPrompts,
  kTier,
  kSlowTier,
  kInLine,
  kBelow,
  kQuota,
  kNewcomer
};
inline constexpr Family kFamilies[] = {
    Family::kRandom, Family::kStarvation, Family::kLongPrompt, Family::kChat,     Family::kQuiet,
    Family::kShare,  Family::kPrompts,    Family::kTier,       Family::kSlowTier, Family::kInLine,
    Family::kBelow,  Family::kQuota,      Family::kNewcomer};
const char* NameOf(Family family);

// What the seeds met, to show that the promises were put to the test.
struct SimCounts {
  int64_t clients = 0, refused = 0, steps = 0, tokens = 0, failed_steps = 0, preemptions = 0,
          cached = 0, loaded = 0, paused = 0, drafted = 0, accepted = 0;
  std::array<int64_t, 8> finishes{};  // by Finish
  void Add(const SimCounts& other);
};

struct SeedResult {
  std::string failure;  // empty: every promise was kept
  SimCounts counts;
  // The quiet tenant's time until the first token, summed over its requests, by its neighbour.
  double quiet_us[3] = {};
};
SeedResult RunSeed(Family family, uint64_t seed, const Simulation::Trace& trace = nullptr);

}  // namespace hearth::testing
