// SPDX-License-Identifier: Apache-2.0
// A complete configuration of HAProxy (2.6 and later) for replicas of one model. Pure: what it says
// was run by tests/fleet.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
namespace hearth {

struct FleetReplica {
  std::string address;  // "10.0.0.1:8080"
  int agent_port = 0;   // 0: no agent check
};
// "HOST:PORT" or "HOST:PORT@AGENTPORT"; `agent_port` is that of replicas that name none.
Result<FleetReplica> ParseReplica(const std::string& text, int agent_port);

enum class FleetBalance : unsigned char {
  kSession,     // the same conversation to the same replica, within the bounded load
  kRoundRobin,  // for comparison: every replica in turn
  kLeast        // the replica with the fewest requests
};

struct FleetSpec {
  std::vector<FleetReplica> replicas;
  std::string listen = "*:8080";
  std::string certificate = {};  // PEM with chain and key; empty: no TLS
  std::string stats = "127.0.0.1:8404";
  FleetBalance balance = FleetBalance::kSession;
  int bounded_load = 300;  // percent of the mean load that one replica may have; 0: no bound
  int max_queued = 32;     // requests that wait at the balancer for one replica
  double queue_s = 30;     // and how long
  double reply_s = 600;    // without a byte of a reply
  int max_connections = 8000;
  bool has_shared_batches = false;  // any replica has all files and batch jobs
};

// Two replicas of one address are refused, and words that HAProxy would read as others.
Result<std::string> HaproxyConfig(const FleetSpec& spec);

// The number by which HAProxy's ring knows a replica: the address's, not the place in the list, so
// that a replica more or less moves only its own sessions. From 1 to 2^30.
int RingId(const std::string& address);

}  // namespace hearth
