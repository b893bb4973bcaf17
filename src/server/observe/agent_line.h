// SPDX-License-Identifier: Apache-2.0
// What a replica tells HAProxy's agent check about itself: how much of its share it wants, how many
// connections, and whether it is leaving. Pure.
#pragma once
#include <string>

#include "engine/snapshot.h"
namespace hearth {

struct AgentOptions {
  double slow_start_s = 30;   // until a replica with an empty cache asks for its full share
  int max_connections = 256;  // that one balancer may open here
};

// Thread: one.
class AgentLine {
 public:
  explicit AgentLine(const AgentOptions& options) : options_(options) {}
  // "up ready 75% maxconn:64\n", "drain\n" or "down #stalled\n"; `up_s` is the time since it was
  // ready.
  std::string Say(const EngineSnapshot& snapshot, bool is_leaving, double up_s);

 private:
  int Weight(const EngineSnapshot& snapshot, double up_s);
  const AgentOptions options_;
  size_t level_ = 0;  // of waiting, see agent_line.cc
};

}  // namespace hearth
