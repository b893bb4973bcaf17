// SPDX-License-Identifier: Apache-2.0
// The scheduler's half that shares out blocks: who may start, and who is preempted.
#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "engine/prompt_reading.h"
#include "engine/scheduler.h"

namespace hearth {
namespace {

// Sequences preempted for a newcomer in one step; more than a few at once would empty the
// batch for one request.
constexpr int kMaxVictimsPerStart = 4;

}  // namespace

int Scheduler::Available(int group) const {
  const KvCounts counts = kv_.counts(group);
  return counts.free + counts.cached;
}

int Scheduler::WorstCase(int group, const Sequence& s) const {
  return kv_.BlocksFor(group, s.max_total, options_.min_chunk);
}

// Sequences that were preempted as often as allowed run on a reservation: their worst case is
// set aside. That works if beside all reservations any one other running sequence, the one that is
// or will be the oldest, can still finish. `s` is about to start.
bool Scheduler::ReservationsHoldWith(const Sequence& s) const {
  for (int group = 0; group < kv_.layout().num_groups(); ++group) {
    int reserved = 0, largest = 0;
    const auto count = [&](const Sequence& one) {
      const int need = WorstCase(group, one);
      if (one.has_reservation) {
        reserved += need;
      } else {
        largest = std::max(largest, need);
      }
    };
    for (const Sequence* other : running_) count(*other);
    count(s);
    if (reserved + largest > kv_.counts(group).total) return false;
  }
  return true;
}

// Blocks that prompts under way will still ask for.
int Scheduler::PendingBlocks() const {
  int64_t blocks = 0;
  for (const Sequence* s : running_) {
    const auto covered = static_cast<int64_t>(s->kv.tables.empty() ? 0 : s->kv.tables[0].size());
    const int64_t wanted = kv_.layout().BlocksUpTo(static_cast<int64_t>(s->tokens.size()));
    blocks += std::max<int64_t>(0, wanted - covered);
  }
  return static_cast<int>(blocks);
}

// Whether a sequence whose first `num_matched` tokens were found has room to start; if not, how
// much there must be first. `before` is what was available before those were held.
bool Scheduler::HasRoomFor(Sequence& s, int num_matched, std::span<const int> before) const {
  // What is reserved is there, whoever is preempted for it.
  if (running_.empty() || s.has_reservation) return true;
  const int headroom = options_.headroom_blocks * static_cast<int>(running_.size());
  const int pending = PendingBlocks();
  bool has_room = true;
  s.blocks_wanted.assign(before.begin(), before.end());
  for (int group = 0; group < kv_.layout().num_groups(); ++group) {
    int need = kv_.BlocksFor(group, static_cast<int>(s.tokens.size()), options_.min_chunk);
    need += headroom;
    // Held for as long as the sequence runs; elsewhere blocks come and go with the window.
    if (kv_.layout().group(group).window == 0) {
      need += pending - num_matched / kv_.layout().block_tokens;
    }
    const int missing = need - Available(group);
    if (missing <= 0) continue;
    has_room = false;
    s.blocks_wanted[static_cast<size_t>(group)] += missing;
  }
  return has_room;
}

bool Scheduler::TryStart(Sequence& s, int64_t now_us) {
  const bool has_place = static_cast<int>(running_.size()) < options_.max_sequences;
  if (!has_place || !ReservationsHoldWith(s)) return false;
  std::vector<int> before;
  for (int group = 0; group < kv_.layout().num_groups(); ++group) {
    before.push_back(Available(group));
  }
  // Looking a long prompt up costs; not before enough was freed since the last try.
  const auto is_short = [&] {
    for (size_t i = 0; i < s.blocks_wanted.size(); ++i) {
      if (before[i] < s.blocks_wanted[i]) return true;
    }
    return false;
  };
  if (!running_.empty() && is_short()) return false;
  const auto length = static_cast<int>(s.tokens.size());
  const int limit = MatchLimit(s);
  KvMatch match = kv_.Match(s.tokens, limit, s.kv);
  if (limit < length - 1) match.miss = {KvMiss::Why::kNotWanted, match.tokens, 0};
  const int num_loaded = s.staged != nullptr ? PlaceStaged(s, match.tokens, limit) : 0;
  const int num_ready = match.tokens + num_loaded;
  if (num_loaded > 0) {  // and further nobody had anything
    const bool is_all = num_ready + kv_.layout().block_tokens > limit;
    match.miss = {is_all ? KvMiss::Why::kNone : KvMiss::Why::kNeverSeen, num_ready, 0};
  }
  if (!HasRoomFor(s, num_ready, before)) {
    kv_.Release(s.kv);
    s.loads.clear();
    return false;
  }
  waiting_tokens_ -= length;
  queue_.Remove(s);
  DropAhead(s);
  s.running = true;
  s.num_computed = num_ready;
  s.record.waited_us += now_us - s.waiting_since_us;
  s.blocked_since_us = -1;
  if (s.record.num_preempted == 0) {
    s.record.started_us = now_us;
    s.record.num_cached = std::min(num_ready, s.num_prompt);  // it may have said something before
    s.record.num_loaded = num_loaded;
    s.record.miss = match.miss;
    if (traffic_ != nullptr) traffic_->CountMiss(s.record.tier_miss);
    if (!s.kv.keys.empty()) s.record.cached_run = s.kv.keys.back();
    totals_.cached_tokens += num_ready;
    totals_.loaded_tokens += num_loaded;
  }
  running_.push_back(&s);
  queue_.Push(s);
  moves_.push_back({s.id, true});
  return true;
}

bool Scheduler::Start(Sequence& s, int64_t now_us) {
  // Nobody overtakes the one whose turn it was: room that is free is for it. Others still may take
  // from those who have too much.
  if (!found_no_room_ && TryStart(s, now_us)) return true;
  found_no_room_ = true;
  if (s.blocked_since_us < 0) s.blocked_since_us = now_us;
  if (!s.has_reservation && !ReservationsHoldWith(s))
    return false;  // nobody's preemption would help
  for (int i = 0; i < kMaxVictimsPerStart; ++i) {
    Sequence* victim = VictimForStart(s);
    if (victim == nullptr) return false;
    Preempt(*victim, now_us);
    if (TryStart(s, now_us)) return true;
  }
  return false;
}

// Whose turn it is to start when `s` is the queue's choice: one that has had its turn for long and
// found no room keeps it against its equals. Else small requests could pass a large one for ever.
Sequence& Scheduler::Turn(Sequence& s, int64_t now_us) {
  const auto found = all_.find(door_);
  if (found != all_.end() && !found->second->running && IsInLine(*found->second)) {
    Sequence& holder = *found->second;
    return queue_.ClassOf(s, now_us) < queue_.ClassOf(holder, now_us) ? s : holder;
  }
  if (s.blocked_since_us >= 0 && now_us - s.blocked_since_us >= options_.patience_us) door_ = s.id;
  return s;
}

const Sequence* Scheduler::Oldest() const {
  const Sequence* oldest = nullptr;
  for (const Sequence* s : running_) {
    if (s->paused) continue;
    if (oldest == nullptr || s->id < oldest->id) oldest = s;
  }
  return oldest;
}

// Who is preempted so that `needy`, which runs already, gets a block; itself when it is the
// cheapest; null when nobody may.
Sequence* Scheduler::VictimFor(const Sequence& needy) const {
  const Sequence* oldest = Oldest();
  const auto is_protected = [&](const Sequence* s) { return s->has_reservation || s == oldest; };
  const bool needy_goes_on = is_protected(&needy);
  Sequence* best = nullptr;
  for (Sequence* s : running_) {
    if (is_protected(s) || s->in_left_step) continue;
    if (s->request.priority < needy.request.priority) continue;
    if (s == &needy && needy_goes_on) continue;
    if (best == nullptr || IsCheaper(*s, *best)) best = s;
  }
  return best;
}

// Paused ones first, then the least urgent, then the least work to do again, then the youngest.
bool Scheduler::IsCheaper(const Sequence& a, const Sequence& b) {
  if (a.paused != b.paused) return a.paused;
  if (a.request.priority != b.request.priority) return a.request.priority > b.request.priority;
  if (a.num_computed != b.num_computed) return a.num_computed < b.num_computed;
  return a.id > b.id;
}

// Who is preempted so that `newcomer` starts: somebody less urgent; or somebody of a tenant that
// has more than its share of the machine while the newcomer's has less.
Sequence* Scheduler::VictimForStart(const Sequence& newcomer) const {
  struct Share {
    int sequences = 0;
    int64_t tokens = 0;
  };
  std::unordered_map<uint32_t, Share> shares;
  for (const Sequence* s : running_) {
    Share& share = shares[s->request.domain.tenant];
    ++share.sequences;
    share.tokens += s->num_computed;
  }
  const int num_tenants = std::max(1, queue_.num_tenants());
  const int fair_sequences = std::max(1, options_.max_sequences / num_tenants);
  const int64_t fair_tokens = kv_.layout().full_tokens() / num_tenants;
  const Share own = shares[newcomer.request.domain.tenant];
  const bool slots_short = static_cast<int>(running_.size()) >= options_.max_sequences;
  const auto has_too_much = [&](const Share& share) {
    return slots_short ? share.sequences > fair_sequences : share.tokens > fair_tokens;
  };
  const bool has_less = slots_short ? own.sequences < fair_sequences
                                    : own.tokens + newcomer.num_prompt <= fair_tokens;
  const Sequence* oldest = Oldest();
  Sequence* best = nullptr;
  for (Sequence* s : running_) {
    if (s->has_reservation || s == oldest || s->in_left_step) continue;
    if (s->request.priority < newcomer.request.priority) continue;
    // One that is paused makes no use of what it holds.
    const bool less_urgent = s->paused || s->request.priority > newcomer.request.priority;
    const bool unfair = has_less && s->request.domain.tenant != newcomer.request.domain.tenant &&
                        has_too_much(shares[s->request.domain.tenant]);
    if (!less_urgent && !unfair) continue;
    if (best == nullptr || IsCheaper(*s, *best)) best = s;
  }
  return best;
}

void Scheduler::Preempt(Sequence& s, int64_t now_us) {
  Unplan(s);
  queue_.Remove(s);
  running_.erase(std::find(running_.begin(), running_.end(), &s));
  kv_.Release(s.kv);  // what it published stays cached, so most of it comes back as a hit
  s.running = false;
  s.num_computed = 0;
  s.blocks_wanted.clear();
  s.loads.clear();
  s.waiting_since_us = now_us;
  s.has_reservation = ++s.record.num_preempted >= options_.max_preemptions;
  ++totals_.num_preemptions;
  waiting_tokens_ += static_cast<int64_t>(s.tokens.size());
  if (IsInLine(s)) queue_.Push(s);
  moves_.push_back({s.id, false});
}

}  // namespace hearth
