// SPDX-License-Identifier: Apache-2.0
// Whose prompt is next: the most urgent class first, tenants of a class in deficit round robin by
// tokens, and within a tenant and class the oldest.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "engine/sequence.h"
namespace hearth {

// Thread: engine only. Holds pointers; the scheduler owns the sequences.
class FairQueue {
 public:
  FairQueue(int64_t aging_us, int quantum) : aging_us_(aging_us), quantum_(quantum) {}

  // A tenant is known, with its debts, while it has sequences in any state.
  void Join(uint32_t tenant) { ++tenants_[tenant].num_sequences; }
  void Leave(uint32_t tenant);

  // In line either to start or, when running, for more of its prompt.
  void Push(Sequence& sequence);
  void Remove(Sequence& sequence);  // nothing happens when it is not in line

  // The next one that is not wholly planned yet, or null; those that wait only when one may start.
  Sequence* Next(int64_t now_us, bool may_start);
  // The tenant starts nobody more before the next round.
  void BlockStarts(uint32_t tenant) { tenants_.at(tenant).blocked_round = round_; }
  void BeginRound() { ++round_; }
  // `tokens` are computed for the tenant.
  void Charge(uint32_t tenant, int tokens);

  // The class it counts as by now: its own, less one for every aging_us since it arrived.
  int ClassOf(const Sequence& sequence, int64_t now_us) const;
  int num_tenants() const { return static_cast<int>(tenants_.size()); }
  double DeficitOf(uint32_t tenant) const;
  // At most `limit` of those that wait, for people to look at.
  std::vector<const Sequence*> SomeWaiting(int limit) const;

 private:
  using Line = std::map<SeqId, Sequence*>;  // oldest first
  struct Tenant {
    double deficit = 0;
    int num_sequences = 0;
    int num_in_line = 0;
    uint64_t blocked_round = 0;
    std::array<Line, kNumPriorities> waiting, prefilling;
  };
  struct Offer {
    Tenant* tenant = nullptr;
    Sequence* sequence = nullptr;
    int urgency = kNumPriorities;
  };
  Line& LineOf(Tenant& tenant, const Sequence& sequence);
  Offer BestOf(Tenant& tenant, int64_t now_us, bool may_start) const;

  int64_t aging_us_;
  int quantum_;
  std::unordered_map<uint32_t, Tenant> tenants_;
  std::vector<Tenant*> active_;  // those with somebody in line; the round goes through them
  size_t turn_ = 0;
  uint64_t round_ = 1;
  std::vector<Offer> offers_;  // Next's, kept for its memory
};

}  // namespace hearth
