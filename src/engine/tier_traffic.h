// SPDX-License-Identifier: Apache-2.0
// Blocks on their way between the backend's memory and a tier. What is fetched waits in host memory
// for its sequence to start, so that a load holds neither blocks nor a place in the batch; what is
// stored was copied to host memory within a step. Whatever a tier does wrong ends here.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "engine/fetch_policy.h"
#include "engine/sequence.h"
#include "engine/staged_prefix.h"
#include "engine/tier_miss.h"
#include "kv/kv_space.h"
#include "kv/tier.h"
namespace hearth {

struct TierOptions {
  int max_loading = 8;  // sequences whose turn it is, at a time
  int64_t max_staged_bytes = int64_t{256} << 20;
  // The same for sequences that are in line: apart, so that they take nothing from those.
  int max_ahead = 8;
  int64_t max_ahead_bytes = int64_t{128} << 20;
  int64_t max_load_us = 2'000'000;    // then a sequence starts with what there is
  int64_t max_ask_us = 200'000;       // for a tier that must ask what it has
  int max_stores = 64;                // under way
  int stores_per_step = 8;            // each costs a step the copy of a block
  int64_t max_store_us = 30'000'000;  // then a store counts as lost
};

struct TierCounts {
  int loading = 0, storing = 0, fetching = 0;  // sequences, blocks, blocks
  int ahead = 0;                               // sequences in line that blocks come for
  int64_t staged_bytes = 0, ahead_bytes = 0;
  uint64_t num_loads = 0, num_loads_used = 0;      // sequences; those that got something
  uint64_t num_ahead = 0;                          // of the loads, those that began in line
  uint64_t num_fetched = 0, num_fetches_lost = 0;  // blocks; those that failed or came too late
  uint64_t num_stored = 0, num_stores_lost = 0;
  uint64_t num_not_worth = 0;          // loads that were possible; computing was faster
  std::vector<TierMissCounts> misses;  // by part
  bool has_more = false;               // there are blocks that were not offered to the tier yet
};

// Thread: engine only.
class TierTraffic {
 public:
  // All outlive it. `watch`, when there is one, hears of what the tier has as far as it is known.
  TierTraffic(Tier& tier, KvSpace& kv, const TierOptions& options, BlockWatch* watch = nullptr);
  ~TierTraffic();

  // A sequence may take its first `limit` tokens out of a cache. True: blocks are on their way,
  // until TakeLoaded names it. False: its record says why.
  enum class When : uint8_t {
    kTurn,   // it is its turn to start, and it waits
    kAhead,  // it is in line, and nobody waits
  };
  bool BeginLoad(Sequence& sequence, int limit, When when, int64_t now_us);
  bool HasRoomAhead() const;
  // Its turn has come while blocks are on their way: it waits from now on.
  void Hurry(SeqId id, int64_t now_us);
  // It ended; what comes for it is thrown away.
  void Drop(SeqId id);

  void OnDone(TierDone done, int64_t at_us);  // the time it came
  void Expire(int64_t now_us);
  struct Loaded {
    SeqId id{};
    std::unique_ptr<StagedPrefix> prefix;  // null: nothing came
    TierMiss miss;                         // of what did not come
  };
  // Whose loads ended since the last call, one way or the other.
  std::vector<Loaded> TakeLoaded() { return std::exchange(loaded_, {}); }

  // Adds copies of blocks that are to be stored; the step that has them ends with EndStep.
  void PlanStores(StepPlan& plan);
  void EndStep(bool succeeded, int64_t now_us);

  // It starts, without what its record says was missed.
  void CountMiss(const TierMiss& miss);
  const std::string& NameOfPart(int part) const;

  FetchPolicy& policy() { return policy_; }
  TierCounts counts() const;
  // Loads and stores that should have been given up by then.
  int NumOverdue(int64_t now_us) const;
  // Whether an answer to this transfer is still waited for.
  bool Awaits(TransferId id) const {
    return fetches_.contains(id) || stores_.contains(id) || asks_.contains(id);
  }

 private:
  // What is to come from one part of the tier.
  struct PartLoad {
    int64_t bytes = 0, good_bytes = 0;
    int num_pending = 0, num_lost = 0;
    int64_t ended_us = 0;
  };
  struct Load {
    When when = When::kTurn;
    std::unique_ptr<StagedPrefix> prefix;  // null: the tier is being asked what it has
    TransferId ask = 0;                    // its question; 0: none
    std::vector<Token> tokens;             // of the blocks that are fetched, and of those before
    std::vector<BlockKey> keys;            // of all blocks from the beginning
    uint32_t tenant = 0;
    int first = 0;   // blocks that are here
    int wanted = 0;  // how far it should reach
    TransferId first_fetch = 0, end_fetch = 0;
    int num_pending = 0;  // of those
    std::vector<PartLoad> parts;
    TierMiss miss;  // without a prefix: why
    int64_t began_us = 0, ends_us = 0;
  };
  struct Fetch {
    SeqId seq{};
    int group = 0, entry = 0, part = 0;
  };
  struct Stored {
    int64_t lost_us = 0;  // when it counts as lost
    TierKey key;
    BlockKey parent;
    std::vector<Token> tokens;  // only when somebody watches
  };
  struct StorePlan {
    KvSpace::IdleBlock block;
    std::vector<std::byte> record;
  };

  template <typename Has>
  int Furthest(int first, int most, const Has& has) const;
  int Reachable(const std::vector<BlockKey>& keys, int first, int64_t max_bytes) const;
  bool IsComing(const BlockKey& key) const;
  bool BeginAsk(SeqId id, Load& load, int64_t now_us);
  TierMiss BeginFetches(SeqId id, Load& load, int64_t now_us);
  void PlanFetches(SeqId id, Load& load);
  void OnAsked(SeqId id, int64_t now_us);
  TierMiss MissOf(TierMiss::Why why, const Load& load) const;
  TierMiss MissAfter(const Load& load, int num_usable) const;
  void Learn(const Load& load, int64_t now_us);
  int64_t PatienceOf(const Load& load, int64_t tokens, int64_t most_us) const;
  int64_t& staged(const Load& load) {
    return load.when == When::kAhead ? ahead_bytes_ : staged_bytes_;
  }
  void StartFetches(const Load& load);
  int64_t BytesOf(int first, int end) const;
  void TellStored(const Stored& stored) const;
  bool Accept(const Fetch& fetch, Load& load, TierDone& done);
  int Usable(const Load& load) const;
  int CancelFetches(const Load& load);
  void EndLoad(SeqId id, Load& load, int64_t now_us);
  TierKey KeyAt(const Load& load, int group, int entry) const {
    return {load.keys[static_cast<size_t>(entry)], group};
  }

  Tier& tier_;
  KvSpace& kv_;
  const TierOptions options_;
  BlockWatch* const watch_;
  FetchPolicy policy_;
  TransferId next_id_ = 1;
  std::unordered_map<SeqId, Load> loads_;
  std::unordered_map<TransferId, Fetch> fetches_;
  std::unordered_map<TransferId, SeqId> asks_;
  std::unordered_map<TransferId, Stored> stores_;
  std::vector<StorePlan> planned_;  // in the step under way
  std::vector<Loaded> loaded_;
  int64_t staged_bytes_ = 0, ahead_bytes_ = 0;
  int num_ahead_ = 0;  // of loads_
  TierCounts totals_;
};

}  // namespace hearth
