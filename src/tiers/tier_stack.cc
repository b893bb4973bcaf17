// SPDX-License-Identifier: Apache-2.0
#include "tiers/tier_stack.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

// The caller's ids grow from one and never get there.
constexpr TransferId kFirstOwn = TransferId{1} << 63;

int RankOf(TierOutcome outcome) {
  switch (outcome) {
    case TierOutcome::kDone:
      return 3;
    case TierOutcome::kFull:
      return 2;
    case TierOutcome::kMissing:
      return 1;
    case TierOutcome::kFailed:
      return 0;
  }
  return 0;
}

}  // namespace

TierStack::TierStack(std::vector<std::unique_ptr<Tier>> tiers) : next_own_(kFirstOwn) {
  HEARTH_CHECK(tiers.size() >= 2);
  for (std::unique_ptr<Tier>& tier : tiers) {
    auto level = std::make_unique<Level>();
    level->stack = this;
    level->number = levels_.size();
    level->num_parts = static_cast<int>(tier->parts().size());
    level->tier = std::move(tier);
    levels_.push_back(std::move(level));
  }
  for (const auto& level : levels_) level->tier->Connect(level.get());
}

TierStack::~TierStack() {
  for (const auto& level : levels_) level->tier->Connect(nullptr);
}

bool TierStack::MayHave(const TierKey& key) const {
  return std::ranges::any_of(levels_, [&](const auto& level) { return level->tier->MayHave(key); });
}

bool TierStack::Wants(const TierKey& key) const {
  return std::ranges::any_of(levels_, [&](const auto& level) { return level->tier->Wants(key); });
}

int TierStack::PartOf(const TierKey& key) const {
  int before = 0;
  for (const auto& level : levels_) {
    if (const int part = level->tier->PartOf(key); part >= 0) return before + part;
    before += level->num_parts;
  }
  return -1;
}

// Each level is asked for what no nearer one has.
bool TierStack::Ask(TransferId id, const std::vector<TierKey>& keys) {
  {
    const MutexLock lock(mu_);
    asks_[id].num_pending = 1;  // ours, until all are asked
  }
  bool is_asked = false;
  std::vector<TierKey> left = keys;
  for (const auto& level : levels_) {
    std::erase_if(left, [&](const TierKey& key) { return level->tier->MayHave(key); });
    if (left.empty()) break;
    {
      const MutexLock lock(mu_);
      ++asks_[id].num_pending;
    }
    const bool asks = level->tier->Ask(id, left);
    is_asked = is_asked || asks;
    if (!asks) {
      const MutexLock lock(mu_);
      --asks_[id].num_pending;
    }
  }
  TierDone done{id, TierOutcome::kDone, {}};
  bool is_over = false;
  {
    const MutexLock lock(mu_);
    is_over = EndPart(asks_, done);
  }
  if (is_over && is_asked) gate_.Answer(std::move(done));
  return is_asked;
}

void TierStack::Store(TransferId id, const TierKey& key, uint32_t tenant,
                      std::vector<std::byte> record) {
  std::vector<Tier*> wanting;
  for (const auto& level : levels_) {
    if (level->tier->Wants(key)) wanting.push_back(level->tier.get());
  }
  if (wanting.empty()) {
    gate_.Answer({id, TierOutcome::kDone, {}});  // all have it
    return;
  }
  {
    const MutexLock lock(mu_);
    stores_[id].num_pending = static_cast<int>(wanting.size());
  }
  for (size_t i = 0; i + 1 < wanting.size(); ++i) wanting[i]->Store(id, key, tenant, record);
  wanting.back()->Store(id, key, tenant, std::move(record));
}

bool TierStack::FetchFrom(size_t level, TransferId id, const Wanted& wanted) {
  for (; level < levels_.size(); ++level) {
    if (!levels_[level]->tier->MayHave(wanted.key)) continue;
    levels_[level]->tier->Fetch(id, wanted.key, wanted.tenant);
    return true;
  }
  return false;
}

void TierStack::Fetch(TransferId id, const TierKey& key, uint32_t tenant) {
  const Wanted wanted{key, tenant};
  {
    const MutexLock lock(mu_);
    fetches_[id] = wanted;
  }
  if (FetchFrom(0, id, wanted)) return;
  {
    const MutexLock lock(mu_);
    fetches_.erase(id);
  }
  gate_.Answer({id, TierOutcome::kMissing, {}});
}

void TierStack::Cancel(TransferId id) {
  {
    const MutexLock lock(mu_);
    fetches_.erase(id);
    stores_.erase(id);  // done all the same, and nobody is told
    asks_.erase(id);
  }
  for (const auto& level : levels_) level->tier->Cancel(id);
}

// Whether all parts of a transfer have been answered; then `done` is the answer to the whole.
bool TierStack::EndPart(std::unordered_map<TransferId, Whole>& of, TierDone& done) {
  const auto found = of.find(done.id);
  if (found == of.end()) return false;
  Whole& whole = found->second;
  if (RankOf(done.outcome) > RankOf(whole.best)) whole.best = done.outcome;
  if (--whole.num_pending > 0) return false;
  done.outcome = whole.best;
  of.erase(found);
  return true;
}

void TierStack::OnLevel(size_t level, TierDone done) {
  std::optional<Wanted> wanted;
  {
    const MutexLock lock(mu_);
    if (const auto fetch = fetches_.find(done.id); fetch != fetches_.end()) {
      wanted = fetch->second;
    } else if (!EndPart(stores_.contains(done.id) ? stores_ : asks_, done)) {
      return;
    }
  }
  if (wanted) {
    OnFetched(level, *wanted, std::move(done));
  } else {
    gate_.Answer(std::move(done));
  }
}

void TierStack::OnFetched(size_t level, const Wanted& wanted, TierDone done) {
  if (done.outcome != TierOutcome::kDone && FetchFrom(level + 1, done.id, wanted)) return;
  {
    const MutexLock lock(mu_);
    if (fetches_.erase(done.id) == 0) return;  // cancelled meanwhile
  }
  // A copy counts against whoever fetched it: that it is here is for them.
  for (size_t i = 0; i < level && done.outcome == TierOutcome::kDone; ++i) {
    Tier& nearer = *levels_[i]->tier;
    if (!nearer.Wants(wanted.key)) continue;
    nearer.Store(next_own_++, wanted.key, wanted.tenant, done.record.Copy());
  }
  gate_.Answer(std::move(done));
}

std::vector<TierPart> TierStack::parts() const {
  std::vector<TierPart> parts;
  for (const auto& level : levels_)
    std::ranges::move(level->tier->parts(), std::back_inserter(parts));
  return parts;
}

TierStats TierStack::stats() const {
  TierStats sum;
  for (const TierPart& part : parts()) {
    sum.num_hits += part.stats.num_hits;
    sum.num_misses += part.stats.num_misses;
    sum.num_corrupt += part.stats.num_corrupt;
    sum.num_failed += part.stats.num_failed;
    sum.num_stored += part.stats.num_stored;
    sum.num_declined += part.stats.num_declined;
    sum.bytes_read += part.stats.bytes_read;
    sum.bytes_written += part.stats.bytes_written;
    sum.bytes_spared += part.stats.bytes_spared;
    sum.used_bytes += part.stats.used_bytes;
    sum.capacity_bytes += part.stats.capacity_bytes;
    sum.num_records += std::max<int64_t>(0, part.stats.num_records);
  }
  return sum;
}

}  // namespace hearth
