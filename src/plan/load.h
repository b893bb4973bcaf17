// SPDX-License-Identifier: Apache-2.0
// Many users on the engine's own loop, scheduler and KV accounting, under a clock that the timing
// model moves: what they would wait for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine_core.h"
#include "kv/layout.h"
#include "sim/timing_model.h"
namespace hearth {

// Users who ask, read the reply, think, and ask again.
struct UserLoad {
  int users = 1;
  int prompt = 1000, reply = 250;  // tokens on average, from half to one and a half
  int shared = 0;                  // tokens at the start of every prompt, alike
  double think_s = 30;             // on average, between a reply's end and the next ask
  int asks = 4;  // of each user at least, from 2, and more of few; the first is not counted
  uint64_t seed = 1;
};

// What one server has.
struct ServerShape {
  KvLayout kv;
  EngineOptions options;
};

struct PlanPercentiles {
  double p50 = 0, p95 = 0, p99 = 0;
};
PlanPercentiles PlanPercentilesOf(std::vector<double> values);

struct LoadOutcome {
  PlanPercentiles first_token_s, gap_s, reply_s;
  double tokens_per_second = 0;  // generated, over all users
  double requests_per_second = 0;
  double mean_batch = 0;  // replies that decode together
  int most_running = 0;
  int refused = 0;          // requests that the engine did not let in
  int64_t preemptions = 0;  // for want of KV memory
};

// kInvalid when a request of this size never fits the server.
Result<LoadOutcome> SimulateLoad(const UserLoad& load, const ServerShape& server,
                                 const TimingModel& timing);

// What users must get.
struct LoadTarget95 {
  double first_token_s = 2, gap_s = 0.2;  // of 95 in 100
};
bool Meets(const LoadOutcome& outcome, const LoadTarget95& target);

struct ReplicaPlan {
  int replicas = 0;  // 0: not even one user to a server gets that
  int users_each = 0;
  LoadOutcome outcome;  // of one of them, or of one with a single user
};
// The least number of equal servers, each with an even share of the users, that meets the target.
Result<ReplicaPlan> PlanReplicas(const UserLoad& load, const ServerShape& server,
                                 const TimingModel& timing, const LoadTarget95& target);

}  // namespace hearth
