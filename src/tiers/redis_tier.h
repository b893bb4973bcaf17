// SPDX-License-Identifier: Apache-2.0
// Blocks in Redis or Valkey, for all replicas of a model: what one of them computed, the others
// fetch. Servers share the blocks by consistent hashing and forget by themselves what is old.
#pragma once
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kv/tenant_shares.h"
#include "kv/tier.h"
#include "tiers/listener_gate.h"
#include "tiers/redis_link.h"
namespace hearth {

struct RedisTierOptions {
  std::vector<RedisAddress> servers;
  RedisLinkOptions link;
  size_t max_known = 1'000'000;  // keys that are remembered as being there; about 60 bytes each
  // A tenant may write its share of all servers' memory in this time, while others write as well.
  // They forget what nobody uses, whoever's it is: this is what a client can do about that.
  int64_t turnover_us = int64_t{3600} * 1'000'000;
  int64_t info_us = 60'000'000;  // servers are asked so often how large they are; 0: never
};

class RedisTier : public Tier {
 public:
  // Connects in the background: a server that is away is no reason to wait.
  explicit RedisTier(const RedisTierOptions& options);
  ~RedisTier() override;

  std::string_view name() const override { return "shared"; }
  void Connect(TierListener* listener) override { gate_.Connect(listener); }
  bool MayHave(const TierKey& key) const override;
  bool Wants(const TierKey& key) const override;
  bool Ask(TransferId id, const std::vector<TierKey>& keys) override;
  void Store(TransferId id, const TierKey& key, uint32_t tenant,
             std::vector<std::byte> record) override;
  void Fetch(TransferId id, const TierKey& key, uint32_t tenant) override;
  void Cancel(TransferId id) override;
  TierStats stats() const override;

  // Which of `names` has this key: adding one moves only what it takes over.
  static size_t ServerOf(const TierKey& key, const std::vector<uint64_t>& names);

 private:
  struct Hash {
    size_t operator()(const TierKey& key) const {
      return static_cast<size_t>(key.block.lo ^ static_cast<uint64_t>(key.group));
    }
  };
  // Two connections: what is stored, in megabytes, does not delay what somebody waits for.
  struct Server {
    std::unique_ptr<RedisLink> fetches, stores;
    // As the server says; 0: it does not, or has no bound.
    int64_t used_bytes = 0, max_bytes = 0, asked_at_us = 0;
  };

  const Server& ServerOf(const TierKey& key) const { return servers_[ServerOf(key, names_)]; }
  bool IsKnown(const TierKey& key) const;
  void Know(const TierKey& key);
  void Unknow(const TierKey& key);
  void OnAnswer(RedisAnswer answer);
  void OnAsked(const RedisAnswer& answer);
  void OnFetched(RedisAnswer answer);
  void OnStored(const RedisAnswer& answer);
  void OnInfo(const RedisAnswer& answer);
  void AskSizes();
  bool MayWrite(uint32_t tenant, int64_t bytes);

  const RedisTierOptions options_;
  ListenerGate gate_;
  std::atomic<uint64_t> num_hits_{0}, num_misses_{0}, num_corrupt_{0}, num_failed_{0};
  std::atomic<uint64_t> num_stored_{0}, num_declined_{0};
  std::atomic<int64_t> bytes_read_{0}, bytes_written_{0}, read_us_{0}, write_us_{0};
  mutable Mutex mu_;
  std::unordered_set<TierKey, Hash> known_ HEARTH_GUARDED_BY(mu_);
  std::deque<TierKey> known_order_ HEARTH_GUARDED_BY(mu_);           // the oldest first
  std::unordered_map<TransferId, int> asks_ HEARTH_GUARDED_BY(mu_);  // servers yet to answer
  TenantBudget budget_ HEARTH_GUARDED_BY(mu_);
  std::vector<uint64_t> names_;  // a number for each server's name
  std::vector<Server> servers_;  // last: their threads use all the rest
};

}  // namespace hearth
