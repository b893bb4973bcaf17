// SPDX-License-Identifier: Apache-2.0
// Which replica of a simulated fleet gets a request.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "plan/fleet_load.h"
#include "plan/fleet_ring.h"
namespace hearth {

enum class FleetPolicy : unsigned char { kRoundRobin, kLeast, kSession, kPrecise };
inline constexpr std::array<FleetPolicy, 4> kFleetPolicies = {
    FleetPolicy::kRoundRobin, FleetPolicy::kLeast, FleetPolicy::kSession, FleetPolicy::kPrecise};
const char* NameOf(FleetPolicy policy);

// Thread: one.
class FleetRouter {
 public:
  struct Options {
    FleetPolicy policy = FleetPolicy::kSession;
    int bounded_load = 300;      // percent of the mean, with kSession; 0: no bound
    int page = 64;               // tokens, of the names that kPrecise remembers
    std::vector<double> speeds;  // of each replica, beside one of 1
    // Tokens of a prompt that a replica has cached; asked with kPrecise alone.
    std::function<int(int, const FleetAsk&)> cached;
  };
  explicit FleetRouter(Options options);

  // -1: nobody is up.
  int Pick(const FleetAsk& ask);
  // Returns how many tokens of its prompt are to be computed, as far as is known.
  int OnSent(int replica, const FleetAsk& ask);
  void OnFirst(int replica, int tokens);  // they are computed
  void OnGone(int replica);               // ended, or lost
  void SetUp(int replica, bool is_up);
  int served(int replica) const { return served_[static_cast<size_t>(replica)]; }

 private:
  int PickPrecise(const FleetAsk& ask);
  double Cost(int replica, const FleetAsk& ask) const;
  void Reorder(int replica, const std::function<void()>& change);

  const Options options_;
  FleetRing ring_;
  std::vector<int> served_;
  std::vector<int64_t> backlog_;  // tokens of prompts that were sent there and are not computed
  std::vector<uint8_t> is_up_;
  // By load, then by who was chosen longest ago.
  using Place = std::tuple<double, uint64_t, int>;
  std::set<Place> by_load_;
  std::vector<uint64_t> turns_;
  uint64_t turn_ = 0;
  // For large fleets: who lately got a prompt with this page in it. A guess that is looked up.
  static constexpr int kHolders = 4;
  struct Holders {
    uint64_t name = 0;
    std::array<int16_t, kHolders> who{-1, -1, -1, -1};
  };
  std::vector<Holders> holders_;  // one per slot, the latest
};

}  // namespace hearth
