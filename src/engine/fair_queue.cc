// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_queue.h"

#include <algorithm>

#include "base/check.h"

namespace hearth {
namespace {

// Tenants without sequences whose use still matters. An address may be a tenant, and there are
// many.
constexpr size_t kMostAbsent = 4096;

}  // namespace

void FairQueue::Join(uint32_t tenant) {
  if (tenants_[tenant].num_sequences++ == 0) ++num_present_;
}

void FairQueue::Leave(uint32_t tenant) {
  const auto found = tenants_.find(tenant);
  HEARTH_CHECK(found != tenants_.end());
  if (--found->second.num_sequences > 0) return;
  HEARTH_CHECK(found->second.num_in_line == 0);
  --num_present_;
  // What a tenant has used less than the credit allows says nothing when it comes back.
  const bool is_crowded = tenants_.size() - static_cast<size_t>(num_present_) > kMostAbsent;
  std::erase_if(tenants_, [&](const auto& entry) {
    const Tenant& absent = entry.second;
    return absent.num_sequences == 0 &&
           (is_crowded || absent.used_us <= most_us_ - credit_us_ || absent.used_us == 0);
  });
}

FairQueue::Line& FairQueue::LineOf(Tenant& tenant, const Sequence& sequence) {
  const auto index = static_cast<size_t>(sequence.request.priority);
  return sequence.running ? tenant.prefilling[index] : tenant.waiting[index];
}

void FairQueue::Push(Sequence& sequence) {
  const uint32_t name = sequence.request.domain.tenant;
  Tenant& tenant = tenants_.at(name);
  if (!LineOf(tenant, sequence).emplace(sequence.id, &sequence).second) return;
  if (tenant.num_in_line++ > 0) return;
  tenant.used_us = std::max(tenant.used_us, most_us_ - credit_us_);
  active_.emplace_back(name, &tenant);
}

void FairQueue::Remove(Sequence& sequence) {
  Tenant& tenant = tenants_.at(sequence.request.domain.tenant);
  if (LineOf(tenant, sequence).erase(sequence.id) == 0 || --tenant.num_in_line > 0) return;
  std::erase_if(active_, [&](const auto& entry) { return entry.second == &tenant; });
}

int FairQueue::ClassOf(const Sequence& sequence, int64_t now_us) const {
  const int own = static_cast<int>(sequence.request.priority);
  const int64_t steps = (now_us - sequence.record.arrived_us) / aging_us_;
  return static_cast<int>(std::max<int64_t>(0, own - std::max<int64_t>(0, steps)));
}

FairQueue::Offer FairQueue::BestOf(const Tenant& tenant, int64_t now_us, bool may_start) const {
  Offer best;
  const auto consider = [&](Sequence* sequence) {
    const int urgency = ClassOf(*sequence, now_us);
    if (urgency > best.urgency) return;
    if (urgency == best.urgency && best.sequence->id < sequence->id) return;
    best = {sequence, urgency};
  };
  for (size_t i = 0; i < kNumPriorities; ++i) {
    for (const auto& [id, sequence] : tenant.prefilling[i]) {
      if (sequence->sits_out || sequence->in_left_step) continue;
      if (sequence->num_planned == sequence->backlog()) continue;
      consider(sequence);
      break;
    }
    const bool may = may_start && tenant.blocked_round != round_;
    if (!may || tenant.waiting[i].empty()) continue;
    const Line& line = tenant.waiting[i];
    consider(line.begin()->second);
  }
  return best;
}

Sequence* FairQueue::Next(int64_t now_us, bool may_start, double below) {
  Offer best;
  double best_us = 0;
  for (const auto& [name, tenant] : active_) {
    if (tenant->used_us >= below) continue;
    const Offer offer = BestOf(*tenant, now_us, may_start);
    if (offer.sequence == nullptr) continue;
    const double used_us = tenant->used_us + tenant->expected_us;
    const bool is_better = best.sequence == nullptr || offer.urgency < best.urgency ||
                           (offer.urgency == best.urgency && used_us < best_us);
    if (!is_better) continue;
    best = offer;
    best_us = used_us;
  }
  return best.sequence;
}

void FairQueue::BeginRound() {
  ++round_;
  for (auto& [name, tenant] : tenants_) tenant.expected_us = 0;
}

void FairQueue::Charge(uint32_t tenant, double us) {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return;  // it left, and owed nothing
  found->second.used_us += us;
  most_us_ = std::max(most_us_, found->second.used_us);
}

double FairQueue::UsedUs(uint32_t tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.used_us;
}

double FairQueue::LeastUsedUs(int64_t now_us, int urgency,
                              const std::vector<uint32_t>& except) const {
  double least_us = kEverybody;
  for (const auto& [name, tenant] : active_) {
    if (tenant->used_us >= least_us || std::ranges::find(except, name) != except.end()) continue;
    const Offer offer = BestOf(*tenant, now_us, true);
    if (offer.sequence != nullptr && offer.urgency <= urgency) least_us = tenant->used_us;
  }
  return least_us;
}

double FairQueue::MostUsedUs() const {
  double most_us = 0;
  for (const auto& [name, tenant] : active_) most_us = std::max(most_us, tenant->used_us);
  return most_us;
}

std::vector<const Sequence*> FairQueue::SomeWaiting(int limit) const {
  std::vector<const Sequence*> some;
  for (const auto& [name, tenant] : active_) {
    for (const Line& line : tenant->waiting) {
      for (const auto& [id, sequence] : line) {
        if (static_cast<int>(some.size()) == limit) return some;
        some.push_back(sequence);
      }
    }
  }
  return some;
}

}  // namespace hearth
