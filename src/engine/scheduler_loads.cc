// SPDX-License-Identifier: Apache-2.0
// The scheduler's part in tiers: who waits for blocks, and how those that came get into a step.
#include <algorithm>

#include "base/check.h"
#include "engine/prompt_reading.h"
#include "engine/scheduler.h"

namespace hearth {

// Nothing but the queue decides when it goes on.
bool Scheduler::IsInLine(const Sequence& s) {
  return !s.paused && !s.follows && !s.loading && (!s.running || s.backlog() > 1);
}

// True: it waits for a tier instead of starting now. Asked once: whoever waited for a tier before
// does not wait again.
bool Scheduler::Load(Sequence& s, int64_t now_us) {
  if (traffic_ == nullptr || s.asked_tier) return false;
  s.asked_tier = true;
  if (!traffic_->BeginLoad(s, MatchLimit(s), now_us)) return false;
  s.loading = true;
  s.loading_since_us = now_us;
  loading_.push_back(&s);
  queue_.Remove(s);
  return true;
}

void Scheduler::OnLoaded(TierTraffic::Loaded loaded, int64_t now_us) {
  const auto found = all_.find(loaded.id);
  if (found == all_.end()) return;
  Sequence& s = *found->second;
  HEARTH_CHECK(s.loading);
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
  for (const StagedBlock& block : staged.blocks) {
    if (block.entry < first || block.entry >= end) continue;
    const BlockId id =
        s.kv.tables[static_cast<size_t>(block.group)][static_cast<size_t>(block.entry)];
    // A shorter end than was hoped for needs earlier blocks of a window; later ones slid out.
    if (id == BlockId::kNone) continue;
    s.loads.push_back({.group = block.group, .block = id, .from_host = block.bytes});
  }
  return (end - first) * block_tokens;
}

}  // namespace hearth
