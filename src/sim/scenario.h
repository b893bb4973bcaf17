// SPDX-License-Identifier: Apache-2.0
// What a simulation plays: a machine, an engine's settings, and who asks for what when. Plain data,
// made from a seed or by hand.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine_core.h"
#include "engine/request.h"
#include "kv/layout.h"
#include "sim/sim_tier.h"
#include "sim/timing_model.h"
namespace hearth {

// How a client takes its tokens.
struct SimReader {
  int capacity = 1 << 20;  // tokens that wait for it before the engine sees no room
  int64_t every_us = 0;    // takes what is there so often; 0: at once
  int stops_after = -1;    // takes no more after so many tokens; -1: never stops
  bool takes_at_once() const { return every_us == 0 && stops_after < 0; }
};

struct SimClient {
  Request request;
  int64_t arrives_us = 0;   // or, when it follows, so long after the other one ended
  int follows = -1;         // index of another client that must have ended
  bool continues = true;    // when it follows: the other's tokens come before this prompt
  int64_t cancels_us = -1;  // so long after it arrived; -1: never
  int bad_position = -1;    // its numbers go wrong there
  SimReader reader;
};

struct SimScenario {
  uint64_t seed = 0;
  KvLayout layout;
  int vocab = 16;
  float habit = 0;  // of the model: see SimModel
  EngineOptions options;
  TimingModel timing{{{1, 1000}}, 0};
  double noise = 0;        // a step takes up to this share longer or shorter
  double stall_share = 0;  // of the steps take `stall_us` longer
  int64_t stall_us = 0;
  double slow_factor = 1;  // steps that begin in [slow_from_us, slow_to_us) take so much longer
  int64_t slow_from_us = 0, slow_to_us = 0;
  double fail_share = 0;  // of the steps fail
  double jump_share = 0;  // of the steps are followed by a jump of the clock: a suspended machine
  int64_t jump_us = 0;
  int64_t drains_us = -1, drain_bound_us = 0;  // -1: never
  SimTierOptions tier;
  std::vector<SimClient> clients;
};

// The scenario that a seed stands for.
SimScenario RandomScenario(uint64_t seed);
std::string Describe(const SimScenario& scenario);

// One tenant asks now and then. Its neighbour keeps half of the machine busy, or asks for many
// times what the machine has.
enum class Neighbour : uint8_t { kNone, kPolite, kFlood };
SimScenario QuietTenantScenario(uint64_t seed, Neighbour neighbour);
// One tenant asks for a token now and then, while another keeps prompts being read, long ones, or
// streams running that never end.
inline constexpr int kNewcomerAsks = 5;  // its first clients
enum class Crowd : uint8_t { kPrompts, kStreams };
SimScenario NewcomerScenario(uint64_t seed, Crowd crowd);
// Two tenants ask for more than the machine has, one of them for four times as much as the other.
SimScenario ShareScenario(uint64_t seed);
// A steady flood of urgent requests, more than the machine can serve, and a few that are not.
SimScenario StarvationScenario(uint64_t seed);
// Streams decode while long prompts arrive.
SimScenario LongPromptScenario(uint64_t seed);
// Eight streams decode; then sixteen prompts of 500 tokens come at once.
SimScenario PromptsAtOnceScenario(uint64_t seed);
// Chats that take turns on a machine with room for a few of them; the others are in a tier.
SimScenario TierScenario(uint64_t seed);
// The same with a tier that takes far longer than computing does.
SimScenario SlowTierScenario(uint64_t seed);
// Chats whose blocks are in a tier alone come again all at once, where one at a time is served.
SimScenario InLineScenario(uint64_t seed);
// Chats come again in turn. A tier takes those of tenant 1; those of tenant 2 are in memory alone,
// which has room for half of all.
SimScenario BelowScenario(uint64_t seed);
// Tenant 1 asks, tenant 2 floods the tier, tenant 1 asks the same again.
SimScenario QuotaScenario(uint64_t seed);
// Turn after turn of a few chats on a machine with room for all of them.
SimScenario ChatScenario(uint64_t seed);

}  // namespace hearth
