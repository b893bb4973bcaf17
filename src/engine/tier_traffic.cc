// SPDX-License-Identifier: Apache-2.0
#include "engine/tier_traffic.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/block_record.h"

namespace hearth {

TierTraffic::TierTraffic(Tier& tier, KvSpace& kv, const TierOptions& options, BlockWatch* watch)
    : tier_(tier), kv_(kv), options_(options), watch_(watch) {
  for (const TierPart& part : tier.parts()) totals_.misses.push_back({part.name, {}});
}

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
int TierTraffic::Reachable(const std::vector<BlockKey>& keys, int first, int64_t max_bytes) const {
  auto most = static_cast<int>(keys.size());
  while (most > first && BytesOf(first, most) > max_bytes) --most;
  return Furthest(first, most, [&](int group, int entry) {
    return tier_.MayHave({keys[static_cast<size_t>(entry)], group});
  });
}

bool TierTraffic::HasRoomAhead() const {
  return num_ahead_ < options_.max_ahead && ahead_bytes_ < options_.max_ahead_bytes;
}

// Whether somebody is already waiting for this block: prompts that begin the same wait together,
// and the second one finds in memory what the first one brought.
bool TierTraffic::IsComing(const BlockKey& key) const {
  return std::ranges::any_of(loads_, [&](const auto& each) {
    const Load& load = each.second;
    return load.keys[static_cast<size_t>(load.first)] == key;
  });
}

bool TierTraffic::BeginLoad(Sequence& s, int limit, When when, int64_t now_us) {
  const int num_loading = static_cast<int>(loads_.size()) - num_ahead_;
  const bool has_room = when == When::kAhead ? HasRoomAhead() : num_loading < options_.max_loading;
  Load load;
  load.when = when;
  s.record.tier_miss = {};
  if (!has_room) {
    s.record.tier_miss = MissOf(TierMiss::Why::kBusy, load);
    return false;
  }
  const int block_tokens = kv_.layout().block_tokens;
  const int most = limit / block_tokens;
  load.first = kv_.Peek(s.kv.domain, s.tokens, limit, load.keys) / block_tokens;
  if (most <= load.first) return false;
  kv_.ExtendKeys(s.kv.domain, s.tokens, static_cast<size_t>(most), load.keys);
  if (when == When::kAhead && IsComing(load.keys[static_cast<size_t>(load.first)])) return false;
  load.tokens.assign(s.tokens.begin(), s.tokens.begin() + most * block_tokens);
  load.tenant = s.kv.domain.tenant;
  load.began_us = now_us;
  if (!BeginAsk(s.id, load, now_us)) {
    s.record.tier_miss = BeginFetches(s.id, load, now_us);
    if (load.prefix == nullptr) return false;
  }
  num_ahead_ += when == When::kAhead;
  totals_.num_ahead += when == When::kAhead;
  const Load& placed = loads_[s.id] = std::move(load);
  StartFetches(placed);
  return true;
}

// Who waits in line anyway has time; who waits for this alone has as much as computing takes.
int64_t TierTraffic::PatienceOf(const Load& load, int64_t tokens, int64_t most_us) const {
  return load.when == When::kAhead ? most_us : policy_.Patience(tokens, most_us);
}

void TierTraffic::Hurry(SeqId id, int64_t now_us) {
  Load& load = loads_.at(id);
  const auto tokens =
      static_cast<int64_t>(load.tokens.size()) - int64_t{load.first} * kv_.layout().block_tokens;
  const int64_t most_us = load.ask != 0 ? options_.max_ask_us : options_.max_load_us;
  load.ends_us = std::min(load.ends_us, now_us + policy_.Patience(tokens, most_us));
}

// A tier may answer at once, and the last answer ends the load: what is needed is taken before.
void TierTraffic::StartFetches(const Load& load) {
  std::vector<std::pair<TransferId, TierKey>> wanted;
  for (TransferId id = load.first_fetch; id < load.end_fetch; ++id) {
    const Fetch& fetch = fetches_.at(id);
    wanted.emplace_back(id, KeyAt(load, fetch.group, fetch.entry));
  }
  const uint32_t tenant = load.tenant;
  for (const auto& [id, key] : wanted) tier_.Fetch(id, key, tenant);
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
  load.ends_us = now_us + PatienceOf(load, tokens, options_.max_ask_us);
  return true;
}

// The fetches of a load, each with the part of the tier that it will come from.
void TierTraffic::PlanFetches(SeqId id, Load& load) {
  load.first_fetch = next_id_;
  for (int group = 0; group < kv_.layout().num_groups(); ++group) {
    for (int i = std::max(load.first, kv_.FirstNeeded(group, load.wanted)); i < load.wanted; ++i) {
      const int part = std::max(0, tier_.PartOf(KeyAt(load, group, i)));
      if (static_cast<size_t>(part) >= load.parts.size()) load.parts.resize(part + 1);
      PartLoad& of = load.parts[static_cast<size_t>(part)];
      ++of.num_pending;
      of.bytes += kv_.layout().group(group).block_bytes;
      fetches_[next_id_++] = {id, group, i, part};
    }
  }
  load.end_fetch = next_id_;
  load.num_pending = static_cast<int>(load.end_fetch - load.first_fetch);
}

// Plans the fetches; StartFetches makes them when the load is in its place. Without a prefix in the
// load afterwards nothing is fetched, and this says why.
TierMiss TierTraffic::BeginFetches(SeqId id, Load& load, int64_t now_us) {
  const int64_t most =
      load.when == When::kAhead ? options_.max_ahead_bytes : options_.max_staged_bytes;
  load.wanted = Reachable(load.keys, load.first, most);
  if (load.wanted <= load.first) return MissOf(TierMiss::Why::kAbsent, load);
  const int block_tokens = kv_.layout().block_tokens;
  const int64_t bytes = BytesOf(load.first, load.wanted);
  const int64_t tokens = int64_t{load.wanted - load.first} * block_tokens;
  if (staged(load) + bytes > most) return MissOf(TierMiss::Why::kBusy, load);
  PlanFetches(id, load);
  std::vector<FetchPolicy::Share> shares;
  for (size_t i = 0; i < load.parts.size(); ++i) {
    if (load.parts[i].bytes > 0) shares.push_back({static_cast<int>(i), load.parts[i].bytes});
  }
  if (!policy_.Pays(tokens, shares, now_us)) {
    ++totals_.num_not_worth;
    for (TransferId each = load.first_fetch; each < load.end_fetch; ++each) fetches_.erase(each);
    load.first_fetch = load.end_fetch = 0;
    return MissOf(TierMiss::Why::kSlower, load);
  }
  ++totals_.num_loads;
  load.prefix = std::make_unique<StagedPrefix>(bytes, staged(load));
  load.prefix->first = load.first;
  load.prefix->is_ahead = load.when == When::kAhead;
  load.tokens.resize(static_cast<size_t>(load.wanted * block_tokens));
  load.began_us = now_us;
  load.ends_us = now_us + PatienceOf(load, tokens, options_.max_load_us);
  return {};
}

// Names those of its parts that are to blame: all of them while nothing was fetched.
TierMiss TierTraffic::MissOf(TierMiss::Why why, const Load& load) const {
  const auto is_to_blame = [&](size_t i) {
    if (load.parts.empty()) return true;
    if (i >= load.parts.size() || load.parts[i].bytes == 0) return false;
    if (why == TierMiss::Why::kLate) return load.parts[i].num_pending > 0;
    if (why == TierMiss::Why::kLost) return load.parts[i].num_lost > 0;
    return true;
  };
  TierMiss miss{why, {}};
  for (size_t i = 0; i < totals_.misses.size(); ++i) {
    if (is_to_blame(i)) miss.tier += (miss.tier.empty() ? "" : ",") + totals_.misses[i].tier;
  }
  return miss;
}

void TierTraffic::CountMiss(const TierMiss& miss) {
  if (miss.why == TierMiss::Why::kNone) return;
  for (TierMissCounts& each : totals_.misses) {
    // Names have no commas.
    const std::string all = "," + miss.tier + ",";
    if (all.find("," + each.tier + ",") == std::string::npos) continue;
    ++each.counts[static_cast<size_t>(miss.why)];
  }
}

const std::string& TierTraffic::NameOfPart(int part) const {
  return totals_.misses.at(static_cast<size_t>(part)).tier;
}

// The tier knows now what it has.
void TierTraffic::OnAsked(SeqId id, int64_t now_us) {
  Load& load = loads_.at(id);
  load.ask = 0;
  load.miss = BeginFetches(id, load, now_us);
  if (load.prefix == nullptr) {
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
  num_ahead_ -= found->second.when == When::kAhead;
  loads_.erase(found);
}

// Takes over the block if it is what was asked for.
bool TierTraffic::Accept(const Fetch& fetch, Load& load, TierDone& done) {
  if (done.outcome != TierOutcome::kDone) return false;
  const auto block_tokens = static_cast<size_t>(kv_.layout().block_tokens);
  const auto tokens = std::span<const Token>(load.tokens)
                          .subspan(static_cast<size_t>(fetch.entry) * block_tokens, block_tokens);
  StagedBlock block{fetch.group, fetch.entry, fetch.part, std::move(done.record), {}};
  const auto bytes = ReadRecord(block.record, KeyAt(load, fetch.group, fetch.entry), tokens,
                                static_cast<size_t>(kv_.layout().group(fetch.group).block_bytes));
  if (!bytes) return false;
  block.bytes = *bytes;  // moving the record leaves them where they are
  load.prefix->blocks.push_back(std::move(block));
  return true;
}

void TierTraffic::TellStored(const Stored& stored) const {
  if (watch_ == nullptr) return;
  const int part = tier_.PartOf(stored.key);
  if (part < 0) return;
  watch_->OnStored(NameOfPart(part),
                   {stored.key.group, stored.key.block, stored.parent, stored.tokens});
}

void TierTraffic::OnDone(TierDone done, int64_t at_us) {
  if (const auto stored = stores_.find(done.id); stored != stores_.end()) {
    const bool is_there = done.outcome == TierOutcome::kDone;
    ++(is_there ? totals_.num_stored : totals_.num_stores_lost);
    if (is_there) {
      kv_.MarkBelow(stored->second.key.group, stored->second.key.block);
      TellStored(stored->second);
    }
    stores_.erase(stored);
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
  if (watch_ != nullptr && done.outcome == TierOutcome::kMissing) {
    watch_->OnRemoved(NameOfPart(fetch.part), fetch.group, KeyAt(load, 0, fetch.entry).block);
  }
  const bool is_good = Accept(fetch, load, done);
  ++(is_good ? totals_.num_fetched : totals_.num_fetches_lost);
  PartLoad& part = load.parts[static_cast<size_t>(fetch.part)];
  --part.num_pending;
  part.num_lost += !is_good;
  if (is_good) part.good_bytes += kv_.layout().group(fetch.group).block_bytes;
  part.ended_us = at_us;
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

// What each part's share took, as far as it came.
void TierTraffic::Learn(const Load& load, int64_t now_us) {
  for (size_t i = 0; i < load.parts.size(); ++i) {
    const PartLoad& part = load.parts[i];
    if (part.bytes == 0) continue;
    const bool came = part.good_bytes > 0;
    const int64_t ended_us = part.num_pending > 0 ? now_us : part.ended_us;
    policy_.Observe({static_cast<int>(i), came ? part.good_bytes : part.bytes},
                    ended_us - load.began_us, came, now_us);
  }
}

TierMiss TierTraffic::MissAfter(const Load& load, int num_usable) const {
  if (num_usable >= load.wanted) {
    if (load.wanted == static_cast<int>(load.keys.size())) return {};
    Load all;  // further none of its parts has anything
    return MissOf(TierMiss::Why::kAbsent, all);
  }
  return MissOf(load.num_pending > 0 ? TierMiss::Why::kLate : TierMiss::Why::kLost, load);
}

void TierTraffic::EndLoad(SeqId id, Load& load, int64_t now_us) {
  const bool was_asking = load.ask != 0;
  totals_.num_fetches_lost += static_cast<uint64_t>(CancelFetches(load));
  num_ahead_ -= load.when == When::kAhead;
  if (load.prefix == nullptr) {  // it has nothing, or did not say in time
    if (was_asking) load.miss = MissOf(TierMiss::Why::kLate, load);
    loaded_.push_back({id, nullptr, std::move(load.miss)});
    loads_.erase(id);
    return;
  }
  load.prefix->num_blocks = Usable(load);
  const bool is_used = load.prefix->num_blocks > 0;
  totals_.num_loads_used += is_used;
  Learn(load, now_us);
  TierMiss miss = MissAfter(load, load.prefix->num_blocks);
  loaded_.push_back({id, is_used ? std::move(load.prefix) : nullptr, std::move(miss)});
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
    if (store.second.lost_us > now_us) return false;
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
      const TierKey key{block->key, block->group};
      if (tier_.Wants(key)) break;
      if (tier_.MayHave(key)) kv_.MarkBelow(key.group, key.block);
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
    const TierKey key{store.block.key, store.block.group};
    Stored& stored = stores_[id] = {now_us + options_.max_store_us, key, store.block.parent, {}};
    if (watch_ != nullptr) stored.tokens = std::move(store.block.tokens);
    tier_.Store(id, key, store.block.tenant, std::move(store.record));
  }
}

int TierTraffic::NumOverdue(int64_t now_us) const {
  int count = 0;
  for (const auto& [id, load] : loads_) count += load.ends_us <= now_us;
  for (const auto& [id, store] : stores_) count += store.lost_us <= now_us;
  return count;
}

TierCounts TierTraffic::counts() const {
  TierCounts counts = totals_;
  counts.loading = static_cast<int>(loads_.size()) - num_ahead_;
  counts.ahead = num_ahead_;
  counts.ahead_bytes = ahead_bytes_;
  counts.storing = static_cast<int>(stores_.size());
  counts.fetching = static_cast<int>(fetches_.size());
  counts.staged_bytes = staged_bytes_;
  return counts;
}

}  // namespace hearth
