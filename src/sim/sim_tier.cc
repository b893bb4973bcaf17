// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_tier.h"

#include <iterator>

namespace hearth {

SimTier::SimTier(const SimTierOptions& options, uint64_t seed, Later later)
    : options_(options),
      seed_(seed),
      random_(seed ^ 0x3c79ac492ba7b653),
      later_(std::move(later)),
      shares_(options.capacity) {}

// What is asked for is known at once, and the answer comes late, twice or never all the same.
bool SimTier::Ask(TransferId id, const std::vector<TierKey>& keys) {
  if (!options_.asks) return false;
  asked_.insert(keys.begin(), keys.end());
  Reply({id, random_.Chance(options_.fail) ? TierOutcome::kFailed : TierOutcome::kDone, {}}, 0);
  return true;
}

bool SimTier::MayHave(const TierKey& key) const {
  if (options_.asks && !asked_.contains(key)) return false;
  const double share =
      static_cast<double>(MixBits(key.block.lo ^ seed_ ^ static_cast<uint64_t>(key.group)) >> 11) *
      0x1p-53;
  return records_.contains(key) != (share < options_.lie);
}

void SimTier::Store(TransferId id, const TierKey& key, uint32_t tenant,
                    std::vector<std::byte> record) {
  const size_t size = record.size();
  TierDone done{id, TierOutcome::kDone, {}};
  if (random_.Chance(options_.fail)) {
    done.outcome = TierOutcome::kFailed;
  } else if (tenant == options_.refuses) {
    done.outcome = TierOutcome::kFull;
  } else if (options_.has_shares) {
    if (static_cast<int>(records_.size()) >= options_.capacity) MakeRoom();
    if (records_.insert_or_assign(key, std::move(record)).second) {
      order_.emplace_back(key, tenant);
      shares_.Add(tenant, 1);
    }
  } else if (static_cast<int>(records_.size()) >= options_.capacity) {
    done.outcome = TierOutcome::kFull;
    // It makes room for the next one, as a store with an eviction of its own would.
    auto victim = records_.begin();
    std::advance(victim, random_.Between(0, static_cast<int>(records_.size()) - 1));
    records_.erase(victim);
  } else {
    records_[key] = std::move(record);
  }
  Reply(std::move(done), size);
}

// The oldest goes; those of a tenant that is spared are as good as new, as on a disk.
void SimTier::MakeRoom() {
  for (size_t i = 0, count = order_.size(); i < count; ++i) {
    const auto [key, tenant] = order_.front();
    order_.pop_front();
    if (shares_.Spares(tenant)) {
      order_.emplace_back(key, tenant);
      continue;
    }
    records_.erase(key);
    shares_.Remove(tenant, 1);
    return;
  }
}

void SimTier::Fetch(TransferId id, const TierKey& key, uint32_t /*tenant*/) {
  TierDone done{id, TierOutcome::kMissing, {}};
  const auto found = records_.find(key);
  if (random_.Chance(options_.fail)) {
    done.outcome = TierOutcome::kFailed;
  } else if (found != records_.end()) {
    done.outcome = TierOutcome::kDone;
    auto from = found;
    if (random_.Chance(options_.swap)) from = records_.begin();
    std::vector<std::byte> record = from->second;
    if (random_.Chance(options_.damage)) {
      const int at = random_.Between(0, static_cast<int>(record.size()) - 1);
      record[static_cast<size_t>(at)] ^= static_cast<std::byte>(1 << random_.Between(0, 7));
    }
    if (random_.Chance(options_.damage)) record.resize(record.size() / 2);
    done.record = std::move(record);
  }
  const size_t size = done.record.size();
  Reply(std::move(done), size);
}

void SimTier::Cancel(TransferId id) {
  if (random_.Chance(0.5)) waiting_.erase(id);
}

void SimTier::Reply(TierDone done, size_t num_bytes) {
  const TransferId id = done.id;
  waiting_[id] = std::move(done);
  if (random_.Chance(options_.lose)) return;
  const auto delay = [&] {
    double us = random_.Exponential(static_cast<double>(options_.latency_us)) +
                options_.us_per_byte * static_cast<double>(num_bytes);
    if (random_.Chance(options_.stall)) us += static_cast<double>(options_.stall_us);
    return static_cast<int64_t>(us);
  };
  later_(delay(), id);
  if (random_.Chance(options_.repeat)) later_(delay(), id);
}

void SimTier::Answer(TransferId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end() || listener_ == nullptr) return;
  listener_->OnTransfer(found->second);
  answered_.push_back(id);
}

}  // namespace hearth
