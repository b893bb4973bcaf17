// SPDX-License-Identifier: Apache-2.0
#include "server/observe/agent_line.h"

#include <algorithm>
#include <iterator>

#include "base/result.h"

namespace hearth {
namespace {

// Every change of a weight moves sessions away from where their prompts are cached, so there are
// few weights, and the way back up needs half the wait of the way down. Short peaks are for the
// balancer's bounded load, which moves nothing.
struct Level {
  double above_s;  // predicted wait from which on it counts
  int weight;      // percent
};
constexpr Level kLevels[] = {{0, 100}, {2, 75}, {6, 50}, {20, 25}};
constexpr int kSlowSteps = 4;

}  // namespace

int AgentLine::Weight(const EngineSnapshot& snapshot, double up_s) {
  while (level_ + 1 < std::size(kLevels) && snapshot.wait_s >= kLevels[level_ + 1].above_s) {
    ++level_;
  }
  while (level_ > 0 && snapshot.wait_s < kLevels[level_].above_s / 2) --level_;
  const int weight = kLevels[level_].weight;
  // A cache on disk or on other machines is warm already.
  if (snapshot.tier || up_s >= options_.slow_start_s) return weight;
  const int step = 1 + static_cast<int>(kSlowSteps * std::max(up_s, 0.0) / options_.slow_start_s);
  return std::min(weight, 100 * std::min(step, kSlowSteps) / kSlowSteps);
}

std::string AgentLine::Say(const EngineSnapshot& snapshot, bool is_leaving, double up_s) {
  const int weight = Weight(snapshot, up_s);
  if (is_leaving || snapshot.is_draining) return "drain\n";
  if (snapshot.is_stalled) return "down #stalled\n";
  // As many again as can run: the next ones are here when a place is free, and whoever would wait
  // longer waits at the balancer, which can still send it elsewhere.
  const int running = snapshot.limits.max_running;
  const int wanted = running + std::min(running, snapshot.limits.max_waiting);
  const int most = wanted > 0 ? std::min(wanted, options_.max_connections)
                              : options_.max_connections;  // no model is loaded yet
  return Printf("up ready %d%% maxconn:%d\n", weight, std::max(most, 1));
}

}  // namespace hearth
