// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "engine/prompt_reading.h"
#include "engine/row_asks.h"

namespace hearth {
namespace {

// Tenants that find no room in one step before all starting is put off to the next.
constexpr int kMaxBlockedPerStep = 4;

// Every running sequence may want its one token in the same step.
SchedulerOptions WithinLimits(SchedulerOptions options) {
  options.max_sequences = std::min(options.max_sequences, options.max_step_tokens);
  options.min_chunk = std::max(1, options.min_chunk);
  return options;
}

ChunkOptions ChunksOf(const SchedulerOptions& options) {
  return {options.min_chunk, options.max_step_tokens, options.itl_target_us, options.quiet_step_us,
          options.experts};
}

}  // namespace

int WidestStepRows(const SchedulerOptions& options) {
  // A row each; beyond that either prompts that are scored or drafts, never both.
  const int drafted = options.fixed_draft > 0 ? options.max_sequences * (1 + options.fixed_draft)
                                              : WidthTimes::kMaxWidth;
  return std::max(options.max_sequences + kMaxScoredRows, drafted);
}

Scheduler::Scheduler(const SchedulerOptions& options, KvSpace& kv, TierTraffic* traffic)
    : options_(WithinLimits(options)),
      kv_(kv),
      traffic_(traffic),
      queue_(options.aging_us),
      chunks_(ChunksOf(options_)),
      asks_less_(!options.asks_all_logits &&
                 (options.backend.chooses_tokens || options.backend.max_top > 0)) {
  // The longest sequence whose worst case the pool can hold.
  int low = 0, high = options.max_context;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    bool fits = true;
    for (int group = 0; group < kv.layout().num_groups(); ++group) {
      fits = fits && kv.BlocksFor(group, middle, options.min_chunk) <= kv.counts(group).total;
    }
    if (fits) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  max_sequence_tokens_ = low;
}

Scheduler::~Scheduler() {
  for (auto& [id, sequence] : all_) kv_.Release(sequence->kv);
}

void Scheduler::Add(std::unique_ptr<Sequence> sequence, int64_t now_us) {
  Sequence& s = *sequence;
  HEARTH_CHECK(s.num_prompt > 0 && s.max_total + (s.request.prompt_only ? 1 : 0) > s.num_prompt);
  HEARTH_CHECK(s.max_total <= max_sequence_tokens_);
  s.kv.domain = s.request.domain;
  s.waiting_since_us = now_us;
  if (s.deadline_us > 0) deadlines_.emplace(s.deadline_us, s.id);
  waiting_tokens_ += static_cast<int64_t>(s.tokens.size());
  const bool is_new = all_.emplace(s.id, std::move(sequence)).second;
  HEARTH_CHECK(is_new);
  queue_.Join(s.request.domain.tenant);
  if (traffic_ != nullptr) newcomers_.push_back(s.id);
  const auto leader = all_.find(s.request.follows);
  if (leader != all_.end() && leader->second->most_computed < leader->second->num_prompt) {
    s.follows = true;
    leader->second->followers.push_back(s.id);
  } else {
    queue_.Push(s);
  }
}

void Scheduler::FreeFollowers(Sequence& leader) {
  for (const SeqId id : std::exchange(leader.followers, {})) {
    const auto found = all_.find(id);
    if (found == all_.end()) continue;
    found->second->follows = false;
    if (IsInLine(*found->second)) queue_.Push(*found->second);
  }
}

void Scheduler::End(SeqId id, Finish why, const std::string& detail, int64_t now_us) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  if (found->second->num_planned > 0) return late_ends_.push_back({id, why, detail});
  Finalise(*found->second, why, detail, now_us);
}

void Scheduler::EndAll(Finish why, const std::string& detail, int64_t now_us) {
  std::vector<SeqId> ids;
  for (const auto& [id, sequence] : all_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const SeqId id : ids) End(id, why, detail, now_us);
}

void Scheduler::SetPaused(SeqId id, bool paused, int64_t now_us) {
  const auto found = all_.find(id);
  if (found == all_.end() || found->second->paused == paused) return;
  Sequence& s = *found->second;
  s.paused = paused;
  if (paused) {
    ++num_paused_;
    s.paused_since_us = now_us;
    queue_.Remove(s);
  } else {
    --num_paused_;
    s.record.paused_us += now_us - s.paused_since_us;
    if (IsInLine(s)) queue_.Push(s);
  }
}

void Scheduler::DropExpired(int64_t now_us) {
  while (!deadlines_.empty() && deadlines_.top().first <= now_us) {
    const auto found = all_.find(deadlines_.top().second);
    deadlines_.pop();
    if (found != all_.end()) End(found->first, Finish::kExpired, "timeout", now_us);
  }
}

void Scheduler::BeginPlan(int64_t now_us) {
  HEARTH_CHECK(!in_step_);
  step_->planned.clear();
  for (const SeqId id : std::exchange(sitting_out_, {})) {
    const auto found = all_.find(id);
    if (found != all_.end()) found->second->sits_out = false;
  }
  start_blocked_ = found_no_room_ = false;
  step_->shape = StepShape();
  step_->charged_us = step_->broken_us = 0;
  step_->is_apart = step_->ends_prompt = false;
  step_->others = 0;
  queue_.BeginRound();
  DropExpired(now_us);
}

const StepPlan& Scheduler::Plan(int64_t now_us) {
  HEARTH_CHECK(left_ == nullptr);
  BeginPlan(now_us);
  const int64_t waited_us = streams_waited_us_;
  if (!PlanApart(now_us)) {
    PlanDecodes(now_us);
    step_->others = 0;
    const StepShape streams = StreamsOf(*step_);
    chunks_.Begin(streams);
    // Streams that waited for somebody's prompt do not wait for another one in the same step.
    if (waited_us == 0 || streams.decode_slices == 0) PlanPrefills(now_us);
  }
  LoadAhead(now_us);
  PlanDrafts();
  BuildPlan(now_us);
  if (traffic_ != nullptr) traffic_->PlanStores(step_->plan);
  in_step_ = !step_->planned.empty();
  return step_->plan;
}

void Scheduler::PlanDecodes(int64_t now_us, double below) {
  // The most urgent and oldest first: when blocks run out, those behind are preempted for them.
  decoders_.clear();
  for (Sequence* s : running_) {
    if (s->num_planned > 0 || queue_.UsedUs(s->request.domain.tenant) >= below) continue;
    if (!s->paused && s->backlog() == 1) decoders_.push_back(s);
  }
  std::sort(decoders_.begin(), decoders_.end(), [](const Sequence* a, const Sequence* b) {
    return std::pair(a->request.priority, a->id) < std::pair(b->request.priority, b->id);
  });
  for (Sequence* s : decoders_) {
    // It may have been the victim of one before it.
    if (s->running && s->backlog() == 1) Grant(*s, 1, now_us);
  }
  CountShape();
}

StepShape Scheduler::StreamsOf(const Step& step) const {
  StepShape streams;
  for (const Sequence* s : step.planned) {
    if (s->num_planned != 1) continue;
    ++streams.decode_slices;
    streams.context += s->num_computed;
  }
  return streams;
}

void Scheduler::CountShape() {
  StepShape& shape = step_->shape = StepShape();
  for (const Sequence* s : step_->planned) {
    const auto drafted = static_cast<int>(s->draft.size()), count = s->num_planned + drafted;
    // A draft costs about what another stream would.
    (s->num_planned == 1 ? shape.decode_slices : shape.prefill_tokens) += count;
    shape.context += int64_t{count} * s->num_computed + int64_t{count} * count / 2;
  }
}

// What the sequence may have of a step that has `left_tokens` to give.
int Scheduler::PrefillShare(const Sequence& s, int left_tokens) {
  const int wanted = s.backlog() - s.num_planned, unit = options_.backend.preferred_tokens;
  int count = chunks_.Fits(step_->shape, s.num_computed + s.num_planned);
  // A few tokens would be left for a step with everybody in it.
  if (step_->is_apart && wanted <= count + count / 4) count = wanted;
  if (IsScoring(s)) count = std::min(count, left_rows_);
  count = std::min({count, left_tokens, options_.quantum});
  if (count >= wanted) return wanted;
  return count > unit ? count - count % unit : count;
}

void Scheduler::PlanPrefills(int64_t now_us, double below) {
  const StepShape& shape = step_->shape;
  int left_tokens =
      options_.max_step_tokens - shape.decode_slices - shape.prefill_tokens - step_->others;
  int num_blocked = 0;
  step_->has_more = false;
  left_rows_ = step_->shape.decode_slices > 0 ? kScoredRowsBesideStreams : kMaxScoredRows;
  const double us_per_token = std::max(1.0, chunks_.model().us_per_prefill_token());
  while (left_tokens > 0) {
    Sequence* s = queue_.Next(now_us, !start_blocked_, below);
    if (s == nullptr) return;
    if (!s->running) s = &Turn(*s, now_us);
    if (!s->running && Load(*s, now_us)) continue;
    if (!s->running && !Start(*s, now_us)) {
      queue_.BlockStarts(s->request.domain.tenant);
      start_blocked_ = s->id == door_ || ++num_blocked >= kMaxBlockedPerStep;
      continue;
    }
    if (IsScoring(*s) && left_rows_ == 0) {
      SitOut(*s);
      continue;
    }
    const int position = s->num_computed + s->num_planned;
    const int share = PrefillShare(*s, left_tokens);
    step_->has_more = share <= 0;
    if (share <= 0) return;
    const int count = Grant(*s, share, now_us);
    if (count == 0) {
      // No block for it and nobody who may be preempted. Others may have room in what they hold.
      if (s->running) SitOut(*s);
      continue;
    }
    queue_.Expect(s->request.domain.tenant, count * us_per_token);
    step_->shape.prefill_tokens += count;
    step_->shape.context += int64_t{count} * position + int64_t{count} * count / 2;
    left_tokens -= count;
    step_->ends_prompt = step_->ends_prompt || s->num_planned == s->backlog();
    if (IsScoring(*s)) left_rows_ -= count;
  }
}

int Scheduler::Grant(Sequence& s, int count, int64_t now_us) {
  while (true) {
    const int had = s.num_planned;
    const int room = kv_.Room(s.kv, s.num_computed, had + count) - had;
    const int taken = std::min(room, count);
    if (taken > 0) {
      const bool reserved = kv_.Reserve(s.kv, s.num_computed, had + taken);
      HEARTH_CHECK(reserved);
      if (had == 0) step_->planned.push_back(&s);
      s.num_planned += taken;
      return taken;
    }
    if (had > 0) return 0;  // it has something this time
    Sequence* victim = VictimFor(s);
    if (victim == nullptr) return 0;  // it sits this step out and keeps what it has
    Preempt(*victim, now_us);
    if (victim == &s) return 0;
  }
}

void Scheduler::SitOut(Sequence& s) {
  s.sits_out = true;
  sitting_out_.push_back(s.id);
}

void Scheduler::Unplan(Sequence& s) {
  if (s.num_planned == 0) return;
  s.num_planned = 0;
  s.draft.clear();
  step_->planned.erase(std::find(step_->planned.begin(), step_->planned.end(), &s));
}

void Scheduler::BuildPlan(int64_t now_us) {
  StepPlan& plan = step_->plan;
  plan.tokens.clear();
  plan.slices.clear();
  plan.num_rows = 0;
  plan.asks.clear();
  plan.copies.clear();
  for (Sequence* s : step_->planned) {
    SeqSlice slice;
    slice.seq = s->id;
    slice.first = static_cast<int>(plan.tokens.size());
    const auto drafted = static_cast<int>(s->draft.size());
    slice.count = s->num_planned + drafted;
    slice.num_computed = s->num_computed;
    slice.tables = s->kv.tables;
    slice.first_row = plan.num_rows;
    plan.copies.insert(plan.copies.end(), s->loads.begin(), s->loads.end());
    AskSlice(*s, drafted, slice);
    plan.num_rows += slice.num_rows;
    if (asks_less_) {
      plan.asks.resize(static_cast<size_t>(plan.num_rows), AskFor(*s, options_.backend));
    }
    const auto from = s->tokens.begin() + s->num_computed;
    plan.tokens.insert(plan.tokens.end(), from, from + s->num_planned);
    plan.tokens.insert(plan.tokens.end(), s->draft.begin(), s->draft.end());
    plan.slices.push_back(slice);
  }
  CountShape();
  ShareOut(now_us);
}

void Scheduler::Commit(std::span<const SliceOutcome> outcomes, int64_t now_us, int64_t step_us) {
  HEARTH_CHECK(outcomes.size() == step_->plan.slices.size());
  ChargeStep(step_us - step_->charged_us);
  chunks_.Observe(step_->shape, step_->has_more, step_us);
  queue_.SetCredit(chunks_.quiet_us());
  if (step_->shape.prefill_tokens == 0) draft_control_.Observe(step_->shape.decode_slices, step_us);
  ++totals_.num_steps;
  totals_.prefill_tokens += step_->shape.prefill_tokens;
  totals_.decode_tokens += step_->shape.decode_slices;
  in_step_ = false;
  for (size_t i = 0; i < step_->planned.size(); ++i) {
    step_->planned[i]->num_planned = 0;
    Book(*step_->planned[i], step_->plan.slices[i], outcomes[i], now_us);
  }
  EndLate(now_us);
}

void Scheduler::Book(Sequence& s, const SeqSlice& slice, const SliceOutcome& outcome,
                     int64_t now_us) {
  s.record.num_computed += slice.count;
  const bool speaks = slice.count - static_cast<int>(s.draft.size()) == s.backlog();
  const int failed = BookDraft(s, outcome);
  s.num_said = 0;
  if (!outcome.error.empty()) {
    Finalise(s, outcome.failure, outcome.error, now_us);  // nothing of this step is published
    return;
  }
  if (speaks && !s.request.prompt_only) Say(s, outcome, now_us);
  BookRead(s, slice);
  const int before = s.num_computed;
  s.num_computed += slice.count - failed;
  const int again = std::min(s.num_computed, s.most_computed) - before;
  s.record.num_recomputed += std::max(0, again);
  totals_.recomputed_tokens += std::max(0, again);
  s.most_computed = std::max(s.most_computed, s.num_computed);
  kv_.Commit(s.kv, s.tokens, s.num_computed);
  s.staged.reset();  // what it brought is in the blocks now
  s.loads.clear();
  if (failed > 0) kv_.Trim(s.kv, s.num_computed);  // no block is held for what was not said
  KeepCheckpoints(s, before);
  if (s.most_computed >= s.num_prompt) FreeFollowers(s);
  if (speaks && EndIfDone(s, outcome, now_us)) return;
  if (s.backlog() <= 1) queue_.Remove(s);
}

void Scheduler::Say(Sequence& s, const SliceOutcome& outcome, int64_t now_us) {
  HEARTH_CHECK(!outcome.tokens.empty());
  if (s.record.num_generated == 0) s.record.first_token_us = now_us;
  const int room = s.max_total - static_cast<int>(s.tokens.size());
  s.num_said = std::min(static_cast<int>(outcome.tokens.size()), room);
  s.tokens.insert(s.tokens.end(), outcome.tokens.begin(), outcome.tokens.begin() + s.num_said);
  s.record.num_generated += s.num_said;
}

bool Scheduler::EndIfDone(Sequence& s, const SliceOutcome& outcome, int64_t now_us) {
  const bool stopped = outcome.stops && s.num_said == static_cast<int>(outcome.tokens.size());
  if (!stopped && static_cast<int>(s.tokens.size()) < s.max_total) return false;
  kv_.KeepCheckpoint(s.kv, s.num_computed);  // the next turn starts here
  Finalise(s, stopped ? Finish::kStop : Finish::kLength, "", now_us);
  return true;
}

// Marks the checkpoints that the step passed: the end of the prompt, and what the request named.
void Scheduler::KeepCheckpoints(Sequence& s, int before) {
  const auto passed = [&](int checkpoint) {
    return checkpoint > before && checkpoint <= s.num_computed;
  };
  if (passed(s.num_prompt)) {
    kv_.KeepCheckpoint(s.kv, s.num_prompt);
    // Who asks the same again computes its last token, and starts a block earlier where that is
    // all of a block.
    kv_.KeepCheckpoint(s.kv, s.num_prompt - 1);
  }
  if (before >= s.num_prompt) return;
  for (const int checkpoint : s.request.checkpoints) {
    if (checkpoint < s.num_prompt && passed(checkpoint)) kv_.KeepCheckpoint(s.kv, checkpoint);
  }
}

void Scheduler::Fail(const Status& status, int64_t now_us) {
  in_step_ = false;
  for (Sequence* s : step_->planned) {
    s->num_planned = 0;
    s->num_said = 0;
    s->record.lacked_memory = status.code() == Code::kExhausted;
  }
  for (Sequence* s : step_->planned) Finalise(*s, Finish::kError, status.message(), now_us);
  EndLate(now_us);
}

void Scheduler::Finalise(Sequence& s, Finish why, const std::string& detail, int64_t now_us) {
  if (s.paused) SetPaused(s.id, false, now_us);
  if (s.loading) {
    traffic_->Drop(s.id);
    std::erase(loading_, &s);
    s.loading = false;
  }
  DropAhead(s);
  s.staged.reset();
  s.loads.clear();
  FreeFollowers(s);
  queue_.Remove(s);
  queue_.Leave(s.request.domain.tenant);
  if (s.running) {
    running_.erase(std::find(running_.begin(), running_.end(), &s));
    Unplan(s);
    kv_.Release(s.kv);
  } else {
    s.record.waited_us += now_us - s.waiting_since_us;
    waiting_tokens_ -= static_cast<int64_t>(s.tokens.size());
  }
  s.running = false;
  s.record.finish = why;
  s.record.detail = detail;
  s.record.ended_us = now_us;
  const auto found = all_.find(s.id);
  ended_.push_back(std::move(found->second));
  all_.erase(found);
}

std::vector<std::unique_ptr<Sequence>> Scheduler::TakeEnded() {
  step_->planned.clear();
  return std::exchange(ended_, {});
}

SchedulerLoad Scheduler::load() const {
  SchedulerLoad load;
  load.num_running = static_cast<int>(running_.size());
  load.num_waiting = static_cast<int>(all_.size() - running_.size());
  load.num_paused = num_paused_;
  load.waiting_tokens = waiting_tokens_;
  for (const Sequence* s : running_) load.backlog_tokens += std::max(0, s->backlog() - 1);
  load.is_full = found_no_room_ && load.num_waiting > 0;
  return load;
}

}  // namespace hearth
