// SPDX-License-Identifier: Apache-2.0
// The scheduler's part in tiers: who waits for blocks, and how those that came get into a step.
#include <algorithm>

#include "base/check.h"
#include "engine/prompt_reading.h"
#include "engine/scheduler.h"

namespace hearth {
namespace {

// Of prompts that are in line; each costs what hashing its tokens does.
constexpr int kLookupsPerStep = 4;

}  // namespace

// Nothing but the queue decides when it goes on.
bool Scheduler::IsInLine(const Sequence& s) {
  return !s.paused && !s.follows && !s.loading && (!s.running || s.backlog() > 1);
}

// True: it waits for a tier instead of starting now. Asked once: whoever waited for a tier before
// does not wait again. Where there is no place to start in, blocks come while it stays in line.
bool Scheduler::Load(Sequence& s, int64_t now_us) {
  if (traffic_ == nullptr) return false;
  if (s.staged != nullptr && std::exchange(s.staged->is_ahead, false)) CheckAhead(s);
  const auto num_places = static_cast<int>(running_.size() + loading_.size());
  if (num_places >= options_.max_sequences) return false;
  if (s.ahead) {
    s.ahead = false;
    traffic_->Hurry(s.id, now_us);
  } else {
    if (s.asked_tier) return false;
    const bool is_begun = traffic_->BeginLoad(s, MatchLimit(s), TierTraffic::When::kTurn, now_us);
    // While others load it starts without, or, where there is no room either, asks again.
    s.asked_tier = is_begun || s.record.tier_miss.why != TierMiss::Why::kBusy;
    if (!is_begun) return false;
  }
  s.loading = true;
  s.loading_since_us = now_us;
  loading_.push_back(&s);
  queue_.Remove(s);
  return true;
}

// What memory had when it was looked up may have gone while it was in line; then it is looked up
// anew.
void Scheduler::CheckAhead(Sequence& s) {
  std::vector<BlockKey> keys;
  const int here = kv_.Peek(s.kv.domain, s.tokens, MatchLimit(s), keys);
  if (here >= s.staged->first * kv_.layout().block_tokens) return;
  s.staged.reset();
  s.asked_tier = false;
}

// It begins, or ends, without what was on its way.
void Scheduler::DropAhead(Sequence& s) {
  if (std::exchange(s.ahead, false)) traffic_->Drop(s.id);
}

// Those that stay in line have time: what a tier has of them is fetched meanwhile, oldest first.
void Scheduler::LoadAhead(int64_t now_us) {
  if (traffic_ == nullptr) return;
  int num_looked_up = 0;
  while (!newcomers_.empty() && num_looked_up < kLookupsPerStep) {
    Sequence* s = Find(newcomers_.front());
    const bool waits = s != nullptr && !s->running && !s->loading && !s->asked_tier;
    if (waits && !traffic_->HasRoomAhead()) return;
    newcomers_.pop_front();
    if (!waits || s->follows) continue;  // who follows finds what its leader brings
    ++num_looked_up;
    s->ahead = s->asked_tier =
        traffic_->BeginLoad(*s, MatchLimit(*s), TierTraffic::When::kAhead, now_us);
  }
}

void Scheduler::OnLoaded(TierTraffic::Loaded loaded, int64_t now_us) {
  const auto found = all_.find(loaded.id);
  if (found == all_.end()) return;
  Sequence& s = *found->second;
  HEARTH_CHECK(s.loading || s.ahead);
  s.record.tier_miss = std::move(loaded.miss);
  if (std::exchange(s.ahead, false)) {  // and stays where it is in line
    s.staged = std::move(loaded.prefix);
    return;
  }
  s.loading = false;
  std::erase(loading_, &s);
  s.record.loading_us = std::max<int64_t>(1, now_us - s.loading_since_us);
  s.staged = std::move(loaded.prefix);
  if (IsInLine(s)) queue_.Push(s);
}

// Takes blocks for what a tier brought and plans the copies. Returns how many tokens that is beyond
// those matched.
int Scheduler::PlaceStaged(Sequence& s, int num_matched, int limit) {
  const int block_tokens = kv_.layout().block_tokens;
  const int first = num_matched / block_tokens;
  const StagedPrefix& staged = *s.staged;
  const int end = staged.num_blocks;
  // What was here when it was asked for may have gone, or all of it may be here by now.
  const bool connects = staged.first <= first;
  const bool is_wanted = end * block_tokens <= limit;
  if (end <= first || !is_wanted || !connects) {
    s.staged.reset();
    return 0;
  }
  if (!kv_.Extend(s.kv, end * block_tokens)) return 0;
  std::vector<int> from(static_cast<size_t>(end - first), -1);  // by entry: a part of the tier
  for (const StagedBlock& block : staged.blocks) {
    if (block.entry < first || block.entry >= end) continue;
    const BlockId id =
        s.kv.tables[static_cast<size_t>(block.group)][static_cast<size_t>(block.entry)];
    // A shorter end than was hoped for needs earlier blocks of a window; later ones slid out.
    if (id == BlockId::kNone) continue;
    from[static_cast<size_t>(block.entry - first)] = block.part;
    s.loads.push_back({.group = block.group, .block = id, .from_host = block.bytes});
  }
  if (s.record.num_preempted == 0) NoteParts(s, from);
  return (end - first) * block_tokens;
}

// Which part of the tier brought how much. An entry without a block of its own, before a window,
// came with the next one.
void Scheduler::NoteParts(Sequence& s, std::span<const int> from) const {
  std::vector<TierTokens>& loaded = s.record.loaded_from;
  loaded.clear();
  int part = 0;
  for (size_t i = from.size(); i-- > 0;) {
    if (from[i] >= 0) part = from[i];
    const std::string& name = traffic_->NameOfPart(part);
    auto of = std::ranges::find(loaded, name, &TierTokens::tier);
    if (of == loaded.end()) of = loaded.insert(loaded.end(), {name, 0});
    of->tokens += kv_.layout().block_tokens;
  }
}

}  // namespace hearth
