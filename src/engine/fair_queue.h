// SPDX-License-Identifier: Apache-2.0
// Whose prompt is next: the most urgent class first, in it the tenant that used least of the
// machine's time, and within a tenant and class the oldest.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "engine/sequence.h"
namespace hearth {

// What tenants used is kept as a virtual time: a tenant that comes back to the line counts as
// having used at least as much as the one that used most, less a credit, so that nobody saves up
// for later and nobody is made to pay for a time when it was alone.
//
// Thread: engine only. Holds pointers; the scheduler owns the sequences.
class FairQueue {
 public:
  static constexpr double kEverybody = std::numeric_limits<double>::infinity();

  explicit FairQueue(int64_t aging_us) : aging_us_(aging_us) {}

  // A tenant has sequences, in any state. What it used is kept beyond, while it matters.
  void Join(uint32_t tenant);
  void Leave(uint32_t tenant);

  // In line either to start or, when running, for more of its prompt.
  void Push(Sequence& sequence);
  void Remove(Sequence& sequence);  // nothing happens when it is not in line

  // The next one that is not wholly planned yet, or null: of tenants that used less than `below`,
  // and of those that wait only when one may start.
  Sequence* Next(int64_t now_us, bool may_start, double below = kEverybody);
  // The tenant starts nobody more before the next round.
  void BlockStarts(uint32_t tenant) { tenants_.at(tenant).blocked_round = round_; }
  void BeginRound();
  // The tenant will use about this much in the step that is planned. Forgotten with the round.
  void Expect(uint32_t tenant, double us) { tenants_.at(tenant).expected_us += us; }
  // It used the machine for so long.
  void Charge(uint32_t tenant, double us);
  void SetCredit(double us) { credit_us_ = us; }
  double credit_us() const { return credit_us_; }
  double UsedUs(uint32_t tenant) const;

  // Of the tenants that have somebody of this class or a more urgent one in line and are not among
  // `except`, what the one that used least has used; infinite when there is none.
  double LeastUsedUs(int64_t now_us, int urgency, const std::vector<uint32_t>& except) const;
  // What the one in line that used most has used; 0 when nobody is in line.
  double MostUsedUs() const;

  // The class it counts as by now: its own, less one for every aging_us since it arrived.
  int ClassOf(const Sequence& sequence, int64_t now_us) const;
  int num_tenants() const { return num_present_; }  // those that have sequences
  int num_known() const { return static_cast<int>(tenants_.size()); }
  // At most `limit` of those that wait, for people to look at.
  std::vector<const Sequence*> SomeWaiting(int limit) const;

 private:
  using Line = std::map<SeqId, Sequence*>;  // oldest first
  struct Tenant {
    double used_us = 0, expected_us = 0;
    int num_sequences = 0;
    int num_in_line = 0;
    uint64_t blocked_round = 0;
    std::array<Line, kNumPriorities> waiting, prefilling;
  };
  struct Offer {
    Sequence* sequence = nullptr;
    int urgency = kNumPriorities;
  };
  Line& LineOf(Tenant& tenant, const Sequence& sequence);
  Offer BestOf(const Tenant& tenant, int64_t now_us, bool may_start) const;

  int64_t aging_us_;
  double credit_us_ = 0;
  double most_us_ = 0;  // what any tenant has used
  std::unordered_map<uint32_t, Tenant> tenants_;
  int num_present_ = 0;
  // Those with somebody in line, longest in line first, which is who goes first of equals.
  std::vector<std::pair<uint32_t, Tenant*>> active_;
  uint64_t round_ = 1;
};

}  // namespace hearth
