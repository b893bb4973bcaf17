// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/terminal.h"
#include "engine/fading_rate.h"
#include "engine/prompt_reading.h"

namespace hearth {
namespace {

constexpr size_t kStepsKept = 512;
constexpr int64_t kReaderPollUs = 5'000;

SchedulerOptions ForBackend(const EngineOptions& options, const Backend& backend) {
  SchedulerOptions scheduler = options.scheduler;
  scheduler.backend = backend.capabilities();
  scheduler.asks_all_logits = options.on_logits != nullptr;
  return scheduler;
}

KvPolicy WithTier(KvPolicy policy, const Tier* tier) {
  policy.offers_idle = tier != nullptr;
  return policy;
}

}  // namespace

// What the loop remembers for others to look at, and which readers it waits for.
struct EngineCore::Stats {
  std::vector<int64_t> step_us;  // a ring of the last kStepsKept
  size_t next_step = 0;
  StepHistogram step_histogram;
  double own_us = 0, mean_us = 0, mean_tokens = 0;  // fading means
  int64_t last_rates_us = -1, busy_since_us = 0;
  FadingRate prefill{kRateSeconds}, decode{kRateSeconds}, ended{30};
  double chunk_tokens = 0, chunk_us = 0;  // fading sums over steps with prompt in them
  SchedulerTotals seen;                   // at the last update
  uint64_t num_backend_failures = 0, num_ended = 0, num_ended_seen = 0;
  std::array<uint64_t, kNumFinishes> num_finished{};
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  int64_t waited_us = 0, ttft_us = 0;
  uint64_t num_first_tokens = 0;
  struct Behind {
    SeqId id{};
    std::shared_ptr<EventSink> sink;
    int64_t since_us = 0;
  };
  std::vector<Behind> behind;  // paused sequences
};

EngineCore::EngineCore(Backend& backend, const EngineOptions& options, const Clock& clock,
                       SideThread* beside, Tier* tier, MaskAhead* ahead,
                       std::function<void()> on_counted)
    : backend_(backend),
      options_(options),
      clock_(clock),
      kv_(backend.kv_layout(), WithTier(options.kv, tier)),
      tier_(tier),
      traffic_(tier != nullptr
                   ? std::make_unique<TierTraffic>(*tier, kv_, options.tier, options.kv.watch)
                   : nullptr),
      scheduler_(ForBackend(options, backend), kv_, traffic_.get()),
      inbox_(options.admission, options.scheduler.max_context, scheduler_.max_sequence_tokens(),
             backend.vocab_size(), backend.hidden_size(), &clock),
      masks_(backend.vocab_size(), clock, beside),
      break_masks_(backend.vocab_size(), clock, nullptr),
      ahead_(ahead),
      on_counted_(std::move(on_counted)),
      step_sampler_(backend.vocab_size(), options.on_logits),
      stats_(std::make_unique<Stats>()) {
  if (tier_ != nullptr) tier_->Connect(&inbox_);
  if (options_.kv.watch != nullptr) {
    options_.kv.watch->Connect(kv_.layout(), [this] { inbox_.Wake(); });
  }
}

EngineCore::~EngineCore() {
  on_counted_ = nullptr;  // whoever listened may be half gone
  if (options_.kv.watch != nullptr) options_.kv.watch->Connect(kv_.layout(), nullptr);
  if (tier_ != nullptr) tier_->Connect(nullptr);
  inbox_.Close();
  ReadInbox(clock_.now_us());
  scheduler_.EndAll(Finish::kShutdown, "the engine is shutting down", clock_.now_us());
  TellEnded();
}

Admission EngineCore::Submit(Request request, std::shared_ptr<EventSink> sink) {
  return inbox_.Offer(std::move(request), std::move(sink), clock_.now_us());
}

void EngineCore::Cancel(SeqId id) { inbox_.Cancel(id); }

void EngineCore::Drain(int64_t bound_us) {
  drain_at_us_ = clock_.now_us() + bound_us;
  inbox_.Close();
}

bool EngineCore::Step() {
  const int64_t began_us = clock_.now_us();
  if (is_idle()) stats_->busy_since_us = began_us;
  ReadInbox(began_us);
  WatchReaders(began_us);
  TakeFilled(began_us);
  const int64_t drain_at_us = drain_at_us_;
  if (drain_at_us >= 0 && began_us >= drain_at_us) {
    scheduler_.EndAll(Finish::kShutdown, "the engine is shutting down", began_us);
  }
  const StepPlan& plan = scheduler_.Plan(began_us);
  CountMoves();
  const bool worked = !plan.empty();
  if (!plan.slices.empty()) {
    RunPlan(plan, began_us);
  } else if (worked) {
    RunCopies(plan);
  }
  TellEnded();
  if (is_idle()) stats_->behind.clear();  // nobody looks again before the next request comes
  UpdateRates(clock_.now_us());
  TellWatch();
  if (worked && options_.self_check_every > 0 &&
      scheduler_.totals().num_steps % options_.self_check_every == 0) {
    SelfCheck();
  }
  return worked;
}

void EngineCore::ReadInbox(int64_t now_us) {
  Inbox::Messages messages = inbox_.Take();
  for (std::unique_ptr<Sequence>& sequence : messages.arrived) {
    const SeqId id = sequence->id;
    const std::shared_ptr<EventSink> sink = sequence->sink;
    sequence->reader_room = sink->Room();
    sequence->mask_is_dear = sequence->request.mask_is_dear;
    Sequence& s = *sequence;
    scheduler_.Add(std::move(sequence), now_us);
    if (sink->Room() <= 0) Pause(id, sink, now_us);
    FillAhead(s, now_us);
  }
  for (const SeqId id : messages.cancelled) scheduler_.End(id, Finish::kCancelled, "", now_us);
  if (traffic_ != nullptr) TakeTransfers(std::move(messages.transfers), now_us);
}

void EngineCore::TakeTransfers(std::vector<Inbox::Transfer> transfers, int64_t now_us) {
  for (Inbox::Transfer& transfer : transfers) {
    traffic_->OnDone(std::move(transfer.done), transfer.at_us);
  }
  traffic_->Expire(now_us);
  for (TierTraffic::Loaded& loaded : traffic_->TakeLoaded()) {
    scheduler_.OnLoaded(std::move(loaded), now_us);
  }
}

// A step in which nothing is computed: blocks on their way to a tier.
void EngineCore::RunCopies(const StepPlan& plan) {
  const Status status = RunStep(backend_, plan).status();
  if (!status.ok()) ++stats_->num_backend_failures;
  traffic_->EndStep(status.ok(), clock_.now_us());
}

void EngineCore::Pause(SeqId id, const std::shared_ptr<EventSink>& sink, int64_t now_us) {
  scheduler_.SetPaused(id, true, now_us);
  stats_->behind.push_back({id, sink, now_us});
}

void EngineCore::WatchReaders(int64_t now_us) {
  std::erase_if(stats_->behind, [&](const Stats::Behind& behind) {
    if (behind.sink->Room() > 0) {
      scheduler_.SetPaused(behind.id, false, now_us);
      return true;
    }
    if (now_us - behind.since_us < options_.slow_reader_us) return false;
    scheduler_.End(behind.id, Finish::kSlowReader, "the client did not read the reply in time",
                   now_us);
    return true;
  });
}

// A reader that is behind holds it back already; then its mask is filled beside a step, once.
void EngineCore::FillAhead(Sequence& s, int64_t now_us) {
  const bool goes_ahead = ahead_ != nullptr && s.mask_is_dear && s.request.mask != nullptr;
  if (!goes_ahead || s.paused || s.record.finish != Finish::kNone) return;
  scheduler_.SetPaused(s.id, true, now_us);
  ahead_->Ask(s.id, s.request.mask, MaskWords(backend_.vocab_size()));
}

void EngineCore::TakeFilled(int64_t now_us) {
  if (ahead_ == nullptr) return;
  constexpr int64_t kCheapUs = 500;  // half of what a step would wait for
  for (MaskAhead::Done& done : ahead_->TakeDone()) {
    Sequence* s = scheduler_.Find(done.id);
    if (s == nullptr) continue;
    s->mask_is_dear = done.filled->took_us >= kCheapUs;
    s->filled = std::move(done.filled);
    scheduler_.SetPaused(done.id, false, now_us);
  }
}

void EngineCore::CountMoves() {
  for (const Scheduler::Move& move : scheduler_.TakeMoves()) {
    move.started ? inbox_.OnStarted(move.id) : inbox_.OnRequeued(move.id);
  }
}

void EngineCore::RunPlan(const StepPlan& plan, int64_t began_us) {
  const int64_t run_us = clock_.now_us();
  masks_.Begin(plan, scheduler_.planned());
  int64_t broken_us = 0;
  Result<std::span<const RowResult>> rows = RunWithBreaks(plan, broken_us);
  const int64_t ran_us = clock_.now_us();
  masks_.End();
  if (traffic_ != nullptr) traffic_->EndStep(rows.ok(), ran_us);
  if (!rows.ok()) {
    ++stats_->num_backend_failures;
    scheduler_.Fail(rows.status(), ran_us);
    return;
  }
  // What its breaks took is not the step's.
  Book(plan, *rows, masks_, began_us + broken_us, run_us + broken_us);
}

// While the step runs, those who used less of the machine may have steps of their own in its
// breaks, which take `broken_us`.
Result<std::span<const RowResult>> EngineCore::RunWithBreaks(const StepPlan& plan,
                                                             int64_t& broken_us) {
  int64_t since_us = clock_.now_us();  // of this part of the step
  int64_t break_at_us = scheduler_.BreakAtUs(since_us);
  const auto wants_break = [&] {
    const int64_t now_us = clock_.now_us();
    if (inbox_.has_arrivals()) {
      ReadInbox(now_us);
      break_at_us = scheduler_.BreakAtUs(since_us);
    }
    return now_us >= break_at_us;
  };
  const auto in_break = [&] {
    const int64_t left_us = clock_.now_us();
    scheduler_.ChargeStep(left_us - since_us);
    ReadInbox(left_us);
    TakeFilled(left_us);
    const bool ran = RunBreak(left_us);
    since_us = clock_.now_us();
    broken_us += since_us - left_us;
    break_at_us = scheduler_.BreakAtUs(since_us);
    // Who found no room now finds none at the next layer.
    if (!ran && break_at_us <= since_us) break_at_us = std::numeric_limits<int64_t>::max();
  };
  return RunStep(backend_, plan, wants_break, in_break);
}

// A step for those who need not wait for the one that was left. False: there was none.
bool EngineCore::RunBreak(int64_t began_us) {
  const StepPlan& plan = scheduler_.PlanBreak(began_us);
  CountMoves();
  const bool runs = !plan.slices.empty();
  if (runs) {
    break_masks_.Begin(plan, scheduler_.planned());
    const int64_t run_us = clock_.now_us();
    Result<std::span<const RowResult>> rows = RunStep(backend_, plan);
    break_masks_.End();
    if (rows.ok()) {
      Book(plan, *rows, break_masks_, began_us, run_us);
    } else {
      ++stats_->num_backend_failures;
      scheduler_.Fail(rows.status(), clock_.now_us());
    }
    TellEnded();
  }
  scheduler_.EndBreak(clock_.now_us() - began_us);
  return runs;
}

// The step began to be planned at `began_us` and to be computed at `run_us`.
void EngineCore::Book(const StepPlan& plan, std::span<const RowResult> rows, MaskFills& masks,
                      int64_t began_us, int64_t run_us) {
  const auto num_tokens = static_cast<double>(plan.tokens.size());  // the plan ends with Commit
  const int64_t ran_us = clock_.now_us();
  const std::span<const SliceOutcome> outcomes =
      step_sampler_.Sample(plan, scheduler_.planned(), rows, masks);
  const int64_t sampled_us = clock_.now_us();
  scheduler_.Commit(outcomes, sampled_us, sampled_us - began_us);
  TellTokens(outcomes, sampled_us);
  const int64_t took_us = clock_.now_us() - began_us;
  Stats& stats = *stats_;
  if (stats.step_us.size() < kStepsKept) stats.step_us.push_back(0);
  stats.step_us[stats.next_step % kStepsKept] = took_us;
  ++stats.next_step;
  const auto place = std::lower_bound(kStepBoundsUs.begin(), kStepBoundsUs.end(), took_us);
  ++stats.step_histogram.counts[static_cast<size_t>(place - kStepBoundsUs.begin())];
  stats.step_histogram.sum_us += took_us;
  const auto fade = [&](double& mean, double value) {
    mean += (value - mean) * (stats.next_step == 1 ? 1 : 0.05);
  };
  fade(stats.own_us, static_cast<double>(took_us - (ran_us - run_us)));
  fade(stats.mean_us, static_cast<double>(took_us));
  fade(stats.mean_tokens, num_tokens);
}

void EngineCore::TellTokens(std::span<const SliceOutcome> outcomes, int64_t now_us) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Sequence& s = *scheduler_.planned()[i];
    if (const auto& scores = outcomes[i].prompt_logprobs; !scores.empty()) {
      s.sink->OnPromptLogprobs(outcomes[i].first_scored, scores);
    }
    if (s.num_said == 0) continue;
    int index = s.num_generated() - s.num_said;
    for (size_t j = 0; j < static_cast<size_t>(s.num_said); ++j) {
      TokenEvent event{outcomes[i].tokens[j], index++, s.record.num_cached};
      if (j < outcomes[i].logprobs.size()) {
        event.logprobs = std::make_shared<const Logprobs>(outcomes[i].logprobs[j]);
      }
      s.sink->OnToken(event);
    }
    s.reader_room = s.sink->Room();  // it can only grow until more is told
    if (s.record.finish == Finish::kNone && s.reader_room <= 0) Pause(s.id, s.sink, now_us);
    FillAhead(s, now_us);
  }
}

void EngineCore::CountEnded(const RequestRecord& record) {
  Stats& stats = *stats_;
  ++stats.num_ended;
  ++stats.num_finished[static_cast<size_t>(record.finish)];
  stats.prompt_tokens += record.num_prompt;
  stats.cached_tokens += record.num_cached;
  stats.generated_tokens += record.num_generated;
  stats.waited_us += record.waited_us;
  if (record.num_generated > 0) {
    ++stats.num_first_tokens;
    stats.ttft_us += record.first_token_us - record.arrived_us;
  }
  inbox_.OnEnded(record.id);
}

// Counts come first: who knows of an end finds it counted.
void EngineCore::TellEnded() {
  const std::vector<std::unique_ptr<Sequence>> ended = scheduler_.TakeEnded();
  for (const std::unique_ptr<Sequence>& sequence : ended) CountEnded(sequence->record);
  if (!ended.empty() && on_counted_) on_counted_();
  for (const std::unique_ptr<Sequence>& sequence : ended) {
    const RequestRecord& record = sequence->record;
    if (sequence->request.pools && record.finish == Finish::kLength) {
      sequence->sink->OnEmbedding(Embedding(sequence->pool));
    }
    sequence->sink->OnFinish(record);
  }
}

void EngineCore::UpdateRates(int64_t now_us) {
  Stats& stats = *stats_;
  const SchedulerTotals& totals = scheduler_.totals();
  const int64_t last_us = stats.last_rates_us < 0 ? now_us : stats.last_rates_us;
  const double elapsed_s = static_cast<double>(std::max<int64_t>(now_us - last_us, 0)) * 1e-6;
  // What is promised is about a machine at work: a night without requests made it no slower.
  const double worked_s =
      std::min(elapsed_s, static_cast<double>(now_us - stats.busy_since_us) * 1e-6);
  const auto prefill = static_cast<double>(totals.prefill_tokens - stats.seen.prefill_tokens);
  const double idle_s = elapsed_s - worked_s;
  stats.prefill.Add(prefill, worked_s, idle_s);
  stats.decode.Add(static_cast<double>(totals.decode_tokens - stats.seen.decode_tokens), worked_s,
                   idle_s);
  stats.ended.Add(static_cast<double>(stats.num_ended - stats.num_ended_seen), worked_s, 0);
  if (prefill > 0) {
    stats.chunk_tokens = 0.98 * stats.chunk_tokens + prefill;
    stats.chunk_us = 0.98 * stats.chunk_us + worked_s * 1e6;
  }
  stats.last_rates_us = now_us;
  stats.seen = totals;
  stats.num_ended_seen = stats.num_ended;
  const SchedulerLoad load = scheduler_.load();
  AdmissionRates rates;
  rates.backlog_tokens = load.backlog_tokens;
  rates.prefill_us_per_token = stats.chunk_tokens > 0 ? stats.chunk_us / stats.chunk_tokens : 0;
  rates.ended_per_s = stats.ended.per_s();
  rates.is_full = load.is_full;
  if (traffic_ != nullptr) traffic_->policy().SetPrefill(rates.prefill_us_per_token);
  inbox_.SetRates(rates);
}

void EngineCore::TellWatch() {
  BlockWatch* watch = options_.kv.watch;
  if (watch == nullptr || !watch->EndStep()) return;
  watch->BeginAll();
  kv_.TellAll(*watch);
  watch->EndStep();
}

bool EngineCore::is_idle() const {
  const SchedulerLoad load = scheduler_.load();
  return load.num_running + load.num_waiting == 0;
}

int64_t EngineCore::SleepUs() const { return is_idle() ? -1 : kReaderPollUs; }

void EngineCore::SelfCheck() const {
  const Status status = kv_.SelfCheck();
  if (!status.ok()) PrintError("KV self-check: %s\n", status.message().c_str());
  HEARTH_CHECK(status.ok());
}

namespace {

SequenceRow RowOf(const Sequence& s, int64_t now_us) {
  SequenceRow row;
  row.id = s.id;
  row.tenant = s.request.domain.tenant;
  row.priority = s.request.priority;
  row.state = s.paused          ? SequenceRow::State::kPaused
              : s.loading       ? SequenceRow::State::kLoading
              : !s.running      ? SequenceRow::State::kWaiting
              : s.backlog() > 1 ? SequenceRow::State::kPrefill
                                : SequenceRow::State::kDecode;
  row.num_prompt = s.num_prompt;
  row.num_cached = s.record.num_cached;
  row.num_computed = s.num_computed;
  row.num_generated = s.num_generated();
  row.num_preempted = s.record.num_preempted;
  row.age_us = now_us - s.record.arrived_us;
  if (s.record.first_token_us > 0) row.saying_us = now_us - s.record.first_token_us;
  row.waited_us = s.record.waited_us + (s.running ? 0 : now_us - s.waiting_since_us);
  return row;
}

}  // namespace

EngineSnapshot EngineCore::TakeSnapshot() const {
  constexpr int kWaitingRows = 64;
  const Stats& stats = *stats_;
  EngineSnapshot snapshot;
  snapshot.at_us = clock_.now_us();
  snapshot.is_draining = drain_at_us_ >= 0;
  snapshot.limits = {options_.scheduler.max_sequences, options_.admission.max_requests,
                     options_.admission.max_tokens, options_.scheduler.itl_target_us};
  snapshot.load = scheduler_.load();
  snapshot.totals = scheduler_.totals();
  if (traffic_ != nullptr) {
    snapshot.tier = traffic_->counts();
    snapshot.tier->has_more = kv_.has_idle();
    snapshot.tier_parts = tier_->parts();
  }
  const KvLayout& layout = kv_.layout();
  snapshot.block_tokens = layout.block_tokens;
  for (int group = 0; group < layout.num_groups(); ++group) {
    snapshot.kv.push_back({NameOfGroup(layout, group), layout.group(group).window,
                           layout.group(group).block_bytes, kv_.counts(group)});
  }
  snapshot.step_model = scheduler_.step_model().coefficients();
  std::vector<int64_t> times = stats.step_us;
  if (!times.empty()) {
    snapshot.steps.last_us = times[(stats.next_step - 1) % kStepsKept];
    std::sort(times.begin(), times.end());
    snapshot.steps.p50_us = times[times.size() / 2];
    snapshot.steps.p99_us = times[times.size() * 99 / 100];
    snapshot.steps.max_us = times.back();
  }
  snapshot.steps.mean_own_us = stats.own_us;
  snapshot.steps.mean_us = stats.mean_us;
  snapshot.steps.mean_tokens = stats.mean_tokens;
  snapshot.step_histogram = stats.step_histogram;
  snapshot.masks = masks_.totals().With(break_masks_.totals());
  snapshot.prefill_tokens_per_s = stats.prefill.per_s();
  snapshot.decode_tokens_per_s = stats.decode.per_s();
  const Inbox::Counts counts = inbox_.counts();
  snapshot.wait_s = counts.wait_s;
  snapshot.num_admitted = counts.num_admitted;
  snapshot.num_refused = counts.num_refused;
  snapshot.num_backend_failures = stats.num_backend_failures;
  snapshot.num_finished = stats.num_finished;
  snapshot.prompt_tokens = stats.prompt_tokens;
  snapshot.cached_tokens = stats.cached_tokens;
  snapshot.generated_tokens = stats.generated_tokens;
  snapshot.waited_us = stats.waited_us;
  snapshot.ttft_us = stats.ttft_us;
  snapshot.num_first_tokens = stats.num_first_tokens;
  for (const Sequence* s : scheduler_.running()) {
    snapshot.rows.push_back(RowOf(*s, snapshot.at_us));
  }
  for (const Sequence* s : scheduler_.loading()) {
    snapshot.rows.push_back(RowOf(*s, snapshot.at_us));
  }
  for (const Sequence* s : scheduler_.queue().SomeWaiting(kWaitingRows)) {
    snapshot.rows.push_back(RowOf(*s, snapshot.at_us));
  }
  return snapshot;
}

}  // namespace hearth
