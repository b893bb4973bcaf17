// SPDX-License-Identifier: Apache-2.0
// Several tiers as one, the nearest first: what one does not have the next is asked for, and what
// comes from far is kept near.
#pragma once
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "kv/tier.h"
#include "tiers/listener_gate.h"
namespace hearth {

class TierStack : public Tier {
 public:
  // Two or more.
  explicit TierStack(std::vector<std::unique_ptr<Tier>> tiers);
  ~TierStack() override;

  std::string_view name() const override { return "stack"; }
  void Connect(TierListener* listener) override { gate_.Connect(listener); }
  bool MayHave(const TierKey& key) const override;
  int PartOf(const TierKey& key) const override;
  bool Wants(const TierKey& key) const override;
  bool Ask(TransferId id, const std::vector<TierKey>& keys) override;
  void Store(TransferId id, const TierKey& key, uint32_t tenant,
             std::vector<std::byte> record) override;
  void Fetch(TransferId id, const TierKey& key, uint32_t tenant) override;
  void Cancel(TransferId id) override;
  TierStats stats() const override;  // the sum
  std::vector<TierPart> parts() const override;

 private:
  struct Level : TierListener {
    void OnTransfer(TierDone done) override { stack->OnLevel(number, std::move(done)); }
    TierStack* stack = nullptr;
    size_t number = 0;
    int num_parts = 1;
    std::unique_ptr<Tier> tier;
  };
  struct Wanted {
    TierKey key;
    uint32_t tenant = 0;
  };
  struct Whole {
    int num_pending = 0;
    TierOutcome best = TierOutcome::kFailed;
  };

  void OnLevel(size_t level, TierDone done);
  void OnFetched(size_t level, const Wanted& wanted, TierDone done);
  bool FetchFrom(size_t level, TransferId id, const Wanted& wanted);
  bool EndPart(std::unordered_map<TransferId, Whole>& of, TierDone& done) HEARTH_REQUIRES(mu_);

  ListenerGate gate_;
  Mutex mu_;
  std::unordered_map<TransferId, Wanted> fetches_ HEARTH_GUARDED_BY(mu_);
  std::unordered_map<TransferId, Whole> stores_ HEARTH_GUARDED_BY(mu_);
  std::unordered_map<TransferId, Whole> asks_ HEARTH_GUARDED_BY(mu_);
  std::atomic<TransferId> next_own_;  // of copies that nobody waits for
  std::vector<std::unique_ptr<Level>> levels_;
};

}  // namespace hearth
