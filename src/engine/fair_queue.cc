// SPDX-License-Identifier: Apache-2.0
#include "engine/fair_queue.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hearth {
namespace {

// Debts and credits are forgotten beyond this many quanta, so that neither a long lone stretch nor
// a long rest decides what happens minutes later.
constexpr double kMaxDebt = 64;
constexpr double kMaxCredit = 2;

}  // namespace

void FairQueue::Leave(uint32_t tenant) {
  const auto found = tenants_.find(tenant);
  HEARTH_CHECK(found != tenants_.end());
  if (--found->second.num_sequences > 0) return;
  HEARTH_CHECK(found->second.num_in_line == 0);
  tenants_.erase(found);
}

FairQueue::Line& FairQueue::LineOf(Tenant& tenant, const Sequence& sequence) {
  const auto index = static_cast<size_t>(sequence.request.priority);
  return sequence.running ? tenant.prefilling[index] : tenant.waiting[index];
}

void FairQueue::Push(Sequence& sequence) {
  Tenant& tenant = tenants_.at(sequence.request.domain.tenant);
  if (!LineOf(tenant, sequence).emplace(sequence.id, &sequence).second) return;
  if (tenant.num_in_line++ > 0) return;
  if (tenant.deficit < -quantum_) {
    active_.push_back(&tenant);
    return;
  }
  // Who has asked for little lately goes next, for one quantum: a short prompt must not wait for
  // the rounds of those who have many.
  tenant.deficit = std::max<double>(tenant.deficit, quantum_);
  active_.insert(active_.begin() + static_cast<std::ptrdiff_t>(turn_), &tenant);
}

void FairQueue::Remove(Sequence& sequence) {
  Tenant& tenant = tenants_.at(sequence.request.domain.tenant);
  if (LineOf(tenant, sequence).erase(sequence.id) == 0 || --tenant.num_in_line > 0) return;
  const auto place = std::find(active_.begin(), active_.end(), &tenant);
  if (static_cast<size_t>(place - active_.begin()) < turn_) --turn_;
  active_.erase(place);
  if (turn_ >= active_.size()) turn_ = 0;
  tenant.deficit = std::min(tenant.deficit, 0.0);  // credit is for those who want something
}

int FairQueue::ClassOf(const Sequence& sequence, int64_t now_us) const {
  const int own = static_cast<int>(sequence.request.priority);
  const int64_t steps = (now_us - sequence.record.arrived_us) / aging_us_;
  return static_cast<int>(std::max<int64_t>(0, own - std::max<int64_t>(0, steps)));
}

FairQueue::Offer FairQueue::BestOf(Tenant& tenant, int64_t now_us, bool may_start) const {
  Offer best{&tenant, nullptr, kNumPriorities};
  const auto consider = [&](Sequence* sequence) {
    const int urgency = ClassOf(*sequence, now_us);
    if (urgency > best.urgency) return;
    if (urgency == best.urgency && best.sequence->id < sequence->id) return;
    best.sequence = sequence;
    best.urgency = urgency;
  };
  for (size_t i = 0; i < kNumPriorities; ++i) {
    for (const auto& [id, sequence] : tenant.prefilling[i]) {
      if (sequence->sits_out || sequence->num_planned == sequence->backlog()) continue;
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

Sequence* FairQueue::Next(int64_t now_us, bool may_start) {
  // The most urgent class that anybody offers, and who offers it, in the order of the round.
  std::vector<Offer>& offers = offers_;
  offers.clear();
  int urgency = kNumPriorities;
  for (size_t i = 0; i < active_.size(); ++i) {
    const Offer offer = BestOf(*active_[(turn_ + i) % active_.size()], now_us, may_start);
    if (offer.sequence == nullptr || offer.urgency > urgency) continue;
    if (offer.urgency < urgency) offers.clear();
    urgency = offer.urgency;
    offers.push_back(offer);
  }
  if (offers.empty()) return nullptr;
  const auto has_credit = [](const Offer& offer) { return offer.tenant->deficit > 0; };
  auto chosen = std::find_if(offers.begin(), offers.end(), has_credit);
  if (chosen == offers.end()) {
    // As many rounds at once as it takes until somebody may go.
    double least = -1e300;
    for (const Offer& offer : offers) least = std::max(least, offer.tenant->deficit);
    const double credit = quantum_ * (std::floor(-least / quantum_) + 1);
    for (const Offer& offer : offers) {
      offer.tenant->deficit = std::min(offer.tenant->deficit + credit, kMaxCredit * quantum_);
    }
    chosen = std::find_if(offers.begin(), offers.end(), has_credit);
  }
  const auto place = std::find(active_.begin(), active_.end(), chosen->tenant);
  turn_ = static_cast<size_t>(place - active_.begin());  // stays there while its credit lasts
  return chosen->sequence;
}

void FairQueue::Charge(uint32_t tenant, int tokens) {
  double& deficit = tenants_.at(tenant).deficit;
  deficit = std::max(deficit - tokens, -kMaxDebt * quantum_);
}

double FairQueue::DeficitOf(uint32_t tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.deficit;
}

std::vector<const Sequence*> FairQueue::SomeWaiting(int limit) const {
  std::vector<const Sequence*> some;
  for (const Tenant* tenant : active_) {
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
