// SPDX-License-Identifier: Apache-2.0
#include "engine/tier_traffic.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/block_record.h"

namespace hearth {

TierTraffic::TierTraffic(Tier& tier, KvSpace& kv, const TierOptions& options)
    : tier_(tier), kv_(kv), options_(options) {}

TierTraffic::~TierTraffic() {
  for (const auto& [id, fetch] : fetches_) tier_.Cancel(id);
  for (const auto& [id, seq] : asks_) tier_.Cancel(id);
  EndStep(false, 0);
}

int64_t TierTraffic::BytesOf(int first, int end) const {
  int64_t bytes = 0;
  for (int group = 0; group < kv_.layout().num_groups(); ++group) {
    const int begin = std::max(first, kv_.FirstNeeded(group, end));
    bytes += std::max(0, end - begin) * kv_.layout().group(group).block_bytes;
  }
  return bytes;
}

// The furthest boundary up to `most` with all the blocks that a start there needs: `has(group,
// entry)`, the first `first` being here. In groups with a window only the last blocks count.
template <typename Has>
int TierTraffic::Furthest(int first, int most, const Has& has) const {
  const KvLayout& layout = kv_.layout();
  std::vector<int> runs(static_cast<size_t>(layout.num_groups()));  // without a gap, up to `end`
  int furthest = first;
  for (int end = first + 1; end <= most; ++end) {
    bool is_whole = true;
    for (int group = 0; group < layout.num_groups(); ++group) {
      int& run = runs[static_cast<size_t>(group)];
      run = has(group, end - 1) ? run + 1 : 0;
      is_whole = is_whole && run >= end - std::max(first, kv_.FirstNeeded(group, end));
    }
    if (is_whole) furthest = end;
    if (layout.has_full() && runs[0] == 0) break;
  }
  return furthest;
}

// How far the tier may have what a start needs, as far as there is memory for it.
int TierTraffic::Reachable(const std::vector<BlockKey>& keys, int first) const {
  auto most = static_cast<int>(keys.size());
  while (most > first && BytesOf(first, most) > options_.max_staged_bytes) --most;
  return Furthest(first, most, [&](int group, int entry) {
    return tier_.MayHave({keys[static_cast<size_t>(entry)], group});
  });
}

bool TierTraffic::BeginLoad(const Sequence& s, int limit, int64_t now_us) {
  if (static_cast<int>(loads_.size()) >= options_.max_loading) return false;
  const int block_tokens = kv_.layout().block_tokens;
  const int most = limit / block_tokens;
  Load load;
  load.first = kv_.Peek(s.kv.domain, s.tokens, limit, load.keys) / block_tokens;
  if (most <= load.first) return false;
  kv_.ExtendKeys(s.kv.domain, s.tokens, static_cast<size_t>(most), load.keys);
  load.tokens.assign(s.tokens.begin(), s.tokens.begin() + most * block_tokens);
  load.began_us = now_us;
  if (!BeginAsk(s.id, load, now_us) && !BeginFetches(s.id, load, now_us)) return false;
  const Load& placed = loads_[s.id] = std::move(load);
  StartFetches(placed);
  return true;
}

// A tier may answer at once, and the last answer ends the load: what is needed is taken before.
void TierTraffic::StartFetches(const Load& load) {
  std::vector<std::pair<TransferId, TierKey>> wanted;
  for (TransferId id = load.first_fetch; id < load.end_fetch; ++id) {
    const Fetch& fetch = fetches_.at(id);
    wanted.emplace_back(id, KeyAt(load, fetch.group, fetch.entry));
  }
  for (const auto& [id, key] : wanted) tier_.Fetch(id, key);
}

// True: the tier asks somebody what it has of the prompt, and the sequence waits for that.
bool TierTraffic::BeginAsk(SeqId id, Load& load, int64_t now_us) {
  std::vector<TierKey> keys;
  for (int i = load.first; i < static_cast<int>(load.keys.size()); ++i) {
    for (int group = 0; group < kv_.layout().num_groups(); ++group) {
      keys.push_back(KeyAt(load, group, i));
    }
  }
  const TransferId ask = next_id_++;
  asks_[ask] = id;  // it may answer at once
  if (!tier_.Ask(ask, keys)) {
    asks_.erase(ask);
    return false;
  }
  load.ask = ask;
  const auto tokens = static_cast<int64_t>(load.tokens.size());
  load.ends_us = now_us + policy_.Patience(tokens, options_.max_ask_us);
  return true;
}

// Plans the fetches; StartFetches makes them when the load is in its place.
bool TierTraffic::BeginFetches(SeqId id, Load& load, int64_t now_us) {
  load.wanted = Reachable(load.keys, load.first);
  if (load.wanted <= load.first) return false;
  const int block_tokens = kv_.layout().block_tokens;
  const int64_t bytes = BytesOf(load.first, load.wanted);
  const int64_t tokens = int64_t{load.wanted - load.first} * block_tokens;
  if (staged_bytes_ + bytes > options_.max_staged_bytes) return false;
  if (!policy_.Pays(tokens, bytes, now_us)) {
    ++totals_.num_not_worth;
    return false;
  }
  ++totals_.num_loads;
  load.prefix = std::make_unique<StagedPrefix>(bytes, staged_bytes_);
  load.prefix->first = load.first;
  load.tokens.resize(static_cast<size_t>(load.wanted * block_tokens));
  load.began_us = now_us;
  load.ends_us = now_us + policy_.Patience(tokens, options_.max_load_us);
  load.first_fetch = next_id_;
  for (int group = 0; group < kv_.layout().num_groups(); ++group) {
    for (int i = std::max(load.first, kv_.FirstNeeded(group, load.wanted)); i < load.wanted; ++i) {
      fetches_[next_id_++] = {id, group, i};
    }
  }
  load.end_fetch = next_id_;
  load.num_pending = static_cast<int>(load.end_fetch - load.first_fetch);
  return true;
}

// The tier knows now what it has.
void TierTraffic::OnAsked(SeqId id, int64_t now_us) {
  Load& load = loads_.at(id);
  load.ask = 0;
  if (!BeginFetches(id, load, now_us)) {
    EndLoad(id, load, now_us);
    return;
  }
  StartFetches(load);
}

// Those that were not answered; says how many.
int TierTraffic::CancelFetches(const Load& load) {
  int count = 0;
  if (load.ask != 0) {
    asks_.erase(load.ask);
    tier_.Cancel(load.ask);
  }
  for (TransferId id = load.first_fetch; id < load.end_fetch; ++id) {
    if (fetches_.erase(id) == 0) continue;
    tier_.Cancel(id);
    ++count;
  }
  return count;
}

void TierTraffic::Drop(SeqId id) {
  const auto found = loads_.find(id);
  if (found == loads_.end()) return;
  CancelFetches(found->second);
  loads_.erase(found);
}

// Takes over the block if it is what was asked for.
bool TierTraffic::Accept(const Fetch& fetch, Load& load, TierDone& done) {
  if (done.outcome != TierOutcome::kDone) return false;
  const auto block_tokens = static_cast<size_t>(kv_.layout().block_tokens);
  const auto tokens = std::span<const Token>(load.tokens)
                          .subspan(static_cast<size_t>(fetch.entry) * block_tokens, block_tokens);
  StagedBlock block{fetch.group, fetch.entry, std::move(done.record), {}};
  const auto bytes = ReadRecord(block.record, KeyAt(load, fetch.group, fetch.entry), tokens,
                                static_cast<size_t>(kv_.layout().group(fetch.group).block_bytes));
  if (!bytes) return false;
  block.bytes = *bytes;  // moving a vector leaves its bytes where they are
  load.prefix->blocks.push_back(std::move(block));
  return true;
}

void TierTraffic::OnDone(TierDone done, int64_t at_us) {
  if (stores_.erase(done.id) > 0) {
    ++(done.outcome == TierOutcome::kDone ? totals_.num_stored : totals_.num_stores_lost);
    return;
  }
  if (const auto ask = asks_.find(done.id); ask != asks_.end()) {
    const SeqId id = ask->second;
    asks_.erase(ask);
    OnAsked(id, at_us);
    return;
  }
  const auto found = fetches_.find(done.id);
  if (found == fetches_.end()) return;  // came twice, too late, or after its sequence had gone
  const Fetch fetch = found->second;
  const auto of = loads_.find(fetch.seq);
  if (of == loads_.end()) return;
  Load& load = of->second;
  const bool is_good = Accept(fetch, load, done);
  ++(is_good ? totals_.num_fetched : totals_.num_fetches_lost);
  fetches_.erase(found);
  if (--load.num_pending == 0) EndLoad(of->first, load, at_us);
}

// How far the blocks that came reach without a gap; 0: nowhere.
int TierTraffic::Usable(const Load& load) const {
  const StagedPrefix& prefix = *load.prefix;
  const auto at = [&](int group, int entry) {
    return static_cast<size_t>(group * (load.wanted - prefix.first) + entry - prefix.first);
  };
  std::vector<bool> came(at(kv_.layout().num_groups(), prefix.first));
  for (const StagedBlock& block : prefix.blocks) came[at(block.group, block.entry)] = true;
  const int end = Furthest(prefix.first, load.wanted,
                           [&](int group, int entry) { return came[at(group, entry)]; });
  return end > prefix.first ? end : 0;
}

void TierTraffic::EndLoad(SeqId id, Load& load, int64_t now_us) {
  totals_.num_fetches_lost += static_cast<uint64_t>(CancelFetches(load));
  if (load.prefix == nullptr) {  // it has nothing, or did not say in time
    loaded_.push_back({id, nullptr});
    loads_.erase(id);
    return;
  }
  load.prefix->num_blocks = Usable(load);
  const bool is_used = load.prefix->num_blocks > 0;
  totals_.num_loads_used += is_used;
  policy_.Observe(load.prefix->size, now_us - load.began_us, is_used, now_us);
  loaded_.push_back({id, is_used ? std::move(load.prefix) : nullptr});
  loads_.erase(id);
}

void TierTraffic::Expire(int64_t now_us) {
  std::vector<SeqId> late;
  for (const auto& [id, load] : loads_) {
    if (load.ends_us <= now_us) late.push_back(id);
  }
  std::ranges::sort(late);  // the map's order is nobody's
  for (const SeqId id : late) EndLoad(id, loads_.at(id), now_us);
  std::erase_if(stores_, [&](const auto& store) {
    if (store.second > now_us) return false;
    tier_.Cancel(store.first);
    ++totals_.num_stores_lost;
    return true;
  });
}

void TierTraffic::PlanStores(StepPlan& plan) {
  HEARTH_CHECK(planned_.empty());
  const int room = options_.max_stores - static_cast<int>(stores_.size());
  for (int i = 0; i < std::min(room, options_.stores_per_step); ++i) {
    std::optional<KvSpace::IdleBlock> block;
    while ((block = kv_.TakeIdle())) {
      if (tier_.Wants({block->key, block->group})) break;
      kv_.Unpin(block->group, block->id);
    }
    if (!block) return;
    const auto size = static_cast<size_t>(kv_.layout().group(block->group).block_bytes);
    StorePlan store{std::move(*block), {}};
    store.record = MakeRecord({store.block.key, store.block.group}, store.block.tokens, size);
    plan.copies.push_back({.group = store.block.group,
                           .block = store.block.id,
                           .to_host = PayloadOf(store.record, size)});
    planned_.push_back(std::move(store));
  }
}

void TierTraffic::EndStep(bool succeeded, int64_t now_us) {
  for (StorePlan& store : std::exchange(planned_, {})) {
    kv_.Unpin(store.block.group, store.block.id);
    if (!succeeded) continue;
    FinishRecord(store.record);
    const TransferId id = next_id_++;
    stores_[id] = now_us + options_.max_store_us;
    tier_.Store(id, {store.block.key, store.block.group}, std::move(store.record));
  }
}

int TierTraffic::NumOverdue(int64_t now_us) const {
  int count = 0;
  for (const auto& [id, load] : loads_) count += load.ends_us <= now_us;
  for (const auto& [id, ends_us] : stores_) count += ends_us <= now_us;
  return count;
}

TierCounts TierTraffic::counts() const {
  TierCounts counts = totals_;
  counts.loading = static_cast<int>(loads_.size());
  counts.storing = static_cast<int>(stores_.size());
  counts.fetching = static_cast<int>(fetches_.size());
  counts.staged_bytes = staged_bytes_;
  return counts;
}

}  // namespace hearth
