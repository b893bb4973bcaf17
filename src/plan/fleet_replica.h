// SPDX-License-Identifier: Apache-2.0
// One server of a simulated fleet: the engine's own loop, scheduler and cache under a virtual
// clock, or a model of them for fleets that are too large for that.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plan/fleet_load.h"
#include "plan/load.h"
#include "plan/page_cache.h"
#include "sim/timing_model.h"
namespace hearth {

// What a request came to at a replica. `number` is the caller's.
struct FleetEnd {
  int64_t number = 0;
  int64_t first_us = 0, ended_us = 0;
  int cached = 0, fetched = 0;  // prompt tokens that were not computed; of those, a tier's
};

// Where gaps between tokens are counted, by their length.
class GapHistogram {
 public:
  void Add(int64_t us, int64_t count);
  void Add(const GapHistogram& other);
  double SecondsAt(double share) const;
  int64_t count() const { return count_; }

 private:
  static constexpr int kPerOctave = 16, kBins = 40 * kPerOctave;
  std::vector<int64_t> bins_ = std::vector<int64_t>(kBins, 0);
  int64_t count_ = 0;
};

// Thread: one.
class FleetReplicaSim {
 public:
  virtual ~FleetReplicaSim() = default;
  // kExhausted: the engine does not let it in now. kInvalid: it never will.
  virtual Status Submit(int64_t number, const FleetAsk& ask, int64_t now_us) = 0;
  // Runs the step that begins now and says when it ends; -1: there is nothing to do.
  virtual int64_t Step(int64_t now_us) = 0;
  // Those that ended with the steps since the last call.
  virtual std::vector<FleetEnd> TakeEnded() = 0;
  // And those whose first token came.
  std::vector<int64_t> TakeBegun() { return std::exchange(begun_, {}); }
  // Tokens of the prompt that it has cached.
  virtual int Cached(const FleetAsk& ask) const = 0;
  // It died or was replaced: what it had is gone, what a tier has is not. The requests that it had
  // and how much of each was heard.
  struct Lost {
    int64_t number = 0;
    int64_t first_us = 0;  // 0: nothing was heard yet
  };
  virtual std::vector<Lost> Restart() = 0;

  GapHistogram gaps;
  int64_t steps = 0, decoded = 0;  // decoded: tokens

 protected:
  std::vector<int64_t> begun_;
};

std::unique_ptr<FleetReplicaSim> MakeEngineReplica(const ServerShape& server,
                                                   const TimingModel& timing);

// Below a replica's memory: its own disk, or a store that all share.
struct FleetTier {
  int64_t tokens = 0;  // that it holds, of one replica or of all; 0: there is none
  bool is_shared = false;
  double tokens_per_s = 0;  // that it brings to one replica
  int64_t latency_us = 1000;
};

// Its steps are those that the engine would make: ChunkControl is the engine's own. Who waits and
// which pages are cached is modelled: first come first served, a request starts when memory holds
// its prompt, nobody is preempted, and pages of `page` tokens go when they are the least recently
// used. `server` and `timing` outlive it.
std::unique_ptr<FleetReplicaSim> MakeModelReplica(const ServerShape& server,
                                                  const TimingModel& timing, const FleetTier& tier,
                                                  int page, PageCache* shared);

}  // namespace hearth
