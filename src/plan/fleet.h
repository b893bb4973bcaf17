// SPDX-License-Identifier: Apache-2.0
// Many replicas in one virtual clock: what users of a fleet would wait for, by how requests are
// routed, and what a failed replica or a deploy does to them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "plan/fleet_load.h"
#include "plan/fleet_replica.h"
#include "plan/fleet_route.h"
#include "plan/load.h"
#include "sim/timing_model.h"
namespace hearth {

// Up to so many replicas are the real scheduler and cache.
inline constexpr int kMostEngineReplicas = 16;
// Up to so many modelled ones have pages as small as the engine's blocks.
inline constexpr int kMostFinePages = 64, kCoarsePage = 64;

// Replicas die, or are replaced in waves.
struct FleetIncident {
  double fail_at_s = -1;  // below 0: none fails
  int fail_count = 1;
  double deploy_at_s = -1;   // below 0: no deploy
  double wave_share = 0.05;  // of the replicas at a time
  double drain_s = 60;       // for what runs; the rest is sent to others
  double restart_s = 30;     // until it is back, with an empty memory
  bool happens() const { return fail_at_s >= 0 || deploy_at_s >= 0; }
};

struct FleetSetup {
  int replicas = 1;
  int fast_replicas = 0;  // of those: so many with `fast_times` the speed
  double fast_times = 1;
  FleetPolicy policy = FleetPolicy::kSession;
  int bounded_load = 300;
  bool uses_model = false;    // the model of a replica whatever the size
  bool coarse_pages = false;  // in such a model, whatever the size
  FleetTier tier = {};        // with one, replicas are modelled
  FleetIncident incident = {};
  bool is_modelled() const {
    return uses_model || replicas > kMostEngineReplicas || tier.tokens > 0;
  }
  // Of a modelled cache, in tokens: a block of the engine's, or coarser for the sake of memory.
  int page() const {
    return coarse_pages || replicas > kMostFinePages ? kCoarsePage : kDefaultBlockTokens;
  }
};

// A slice of the simulated time.
struct FleetMoment {
  double from_s = 0;
  double first_token_p95_s = 0;
  double hit_share = 0;
  int64_t requests = 0;
  int least_up = 0;
};

struct FleetOutcome {
  FleetPolicy policy = FleetPolicy::kSession;
  int replicas = 0;
  bool is_modelled = false;
  int64_t requests = 0, counted = 0;  // those after the first tenth are counted
  int64_t refused = 0;
  int64_t broken = 0, resent = 0;  // streams that broke; requests that went to another unnoticed
  double hit_share = 0, fetched_share = 0;  // of prompt tokens; fetched: from a tier
  PlanPercentiles first_token_s, gap_s, reply_s;
  double tokens_per_second = 0, requests_per_second = 0;
  double mean_batch = 0;
  double busiest = 0;  // the busiest replica's requests beside the mean's
  double simulated_s = 0, took_s = 0;
  std::vector<FleetMoment> moments;
};

// kInvalid when a request never fits a replica.
Result<FleetOutcome> SimulateFleet(FleetLoad load, const FleetSetup& setup,
                                   const ServerShape& server, const TimingModel& timing);

bool Meets(const FleetOutcome& outcome, const LoadTarget95& target);

// The fewest replicas that meet the target, and all that were tried on the way, ascending. None do:
// the last tried is the largest.
struct FleetSearch {
  int replicas = 0;  // 0: not within `most`
  std::vector<FleetOutcome> tried;
};
Result<FleetSearch> FindReplicas(const std::function<FleetLoad()>& load, FleetSetup setup, int most,
                                 const ServerShape& server, const TimingModel& timing,
                                 const LoadTarget95& target);

// A machine by two rates: tokens a second of prompts, and of `batch` replies together.
TimingModel TimingOfRates(double prefill, double decode, int batch);

// What `hearth plan fleet` found: text, JSON and page show one record.
struct FleetRecord {
  std::string hearth, replica, load, date;  // replica, load: in words
  LoadTarget95 target;
  double price = 0;    // of a replica and hour; 0: not given
  FleetSearch search;  // nothing tried: the number was given
  std::vector<FleetOutcome> policies;
  std::vector<FleetOutcome> incidents;
  FleetIncident incident;
  int64_t peak_bytes = 0;  // of this process
  std::vector<std::string> assumptions;
};
std::string FleetText(const FleetRecord& record);
Json FleetJson(const FleetRecord& record);
std::string FleetPage(const FleetRecord& record);  // HTML that loads nothing

}  // namespace hearth
