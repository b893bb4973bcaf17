// SPDX-License-Identifier: Apache-2.0
// A tier that does everything a real one may do: answers late, twice, never or wrong, is full,
// damages what it keeps, and guesses badly what it has. What happens depends on its seed alone.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kv/tenant_shares.h"
#include "kv/tier.h"
#include "sim/random.h"
namespace hearth {

struct SimTierOptions {
  bool exists = false;
  int64_t latency_us = 500;  // on average; answers come out of order
  double us_per_byte = 0;
  int capacity = 1 << 20;  // blocks
  // Shares of the transfers.
  double lose = 0;    // are never answered
  double repeat = 0;  // are answered twice
  double fail = 0;    // fail
  double damage = 0;  // bring bytes that are not what was stored
  double swap = 0;    // bring another block, whole
  double stall = 0;   // take `stall_us` longer
  int64_t stall_us = 0;
  double lie = 0;           // of the keys: MayHave is wrong about them
  bool has_shares = false;  // full, it lets the oldest go, by tenants' shares; else any
  uint32_t refuses = ~0u;   // a tenant that it stores nothing of
  bool asks = false;        // it says what it has after being asked alone
  double copy_fails = 0;    // of the copies between backend and host fail, and with them the step
};

// Thread: one.
class SimTier : public Tier {
 public:
  // Asks for Answer(id) to be called after a while.
  using Later = std::function<void(int64_t delay_us, TransferId id)>;
  SimTier(const SimTierOptions& options, uint64_t seed, Later later);

  std::string_view name() const override { return "sim"; }
  void Connect(TierListener* listener) override { listener_ = listener; }
  bool MayHave(const TierKey& key) const override;
  bool Ask(TransferId id, const std::vector<TierKey>& keys) override;
  void Store(TransferId id, const TierKey& key, uint32_t tenant,
             std::vector<std::byte> record) override;
  void Fetch(TransferId id, const TierKey& key, uint32_t tenant) override;
  void Cancel(TransferId id) override;

  void Answer(TransferId id);
  // Transfers that were answered since the last call.
  std::vector<TransferId> TakeAnswered() { return std::exchange(answered_, {}); }
  size_t num_blocks() const { return records_.size(); }

 private:
  void Reply(TierDone done, size_t num_bytes);
  void MakeRoom();

  const SimTierOptions options_;
  const uint64_t seed_;
  SimRandom random_;
  Later later_;
  TierListener* listener_ = nullptr;
  std::set<TierKey> asked_;                            // with `asks`: what is known of
  std::map<TierKey, std::vector<std::byte>> records_;  // in an order that is the same everywhere
  std::deque<std::pair<TierKey, uint32_t>> order_;     // with shares: the oldest first, whose it is
  TenantShares shares_;                                // in blocks
  std::unordered_map<TransferId, TierDone> waiting_;
  std::vector<TransferId> answered_;
};

}  // namespace hearth
