// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "base/mutant.h"
#include "engine/prompt_reading.h"

namespace hearth {
namespace {

constexpr size_t kStepsKept = 512;
constexpr int64_t kReaderPollUs = 5'000;

// Events per second over about the last `seconds`; right from the first second on.
class FadingRate {
 public:
  explicit FadingRate(double seconds) : seconds_(seconds) {}
  void Add(double count, double elapsed_s) {
    const double keep = std::exp(-elapsed_s / seconds_);
    count_ = count_ * keep + count;
    time_s_ = time_s_ * keep + elapsed_s;
  }
  double per_s() const { return time_s_ > 0 ? count_ / time_s_ : 0; }

 private:
  double seconds_, count_ = 0, time_s_ = 0;
};

}  // namespace

// What the loop remembers for others to look at, and which readers it waits for.
struct EngineCore::Books {
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
                       SideThread* beside)
    : backend_(backend),
      options_(options),
      clock_(clock),
      kv_(backend.kv_layout(), options.kv),
      scheduler_(options.scheduler, kv_),
      inbox_(options.admission, options.scheduler.max_context, scheduler_.max_sequence_tokens(),
             backend.vocab_size(), backend.hidden_size()),
      masks_(backend.vocab_size(), clock, beside),
      step_sampler_(backend.vocab_size(), options.on_logits),
      books_(std::make_unique<Books>()) {}

EngineCore::~EngineCore() {
  inbox_.Close();
  TakeMail(clock_.now_us());
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
  if (is_idle()) books_->busy_since_us = began_us;
  TakeMail(began_us);
  WatchReaders(began_us);
  const int64_t drain_at_us = drain_at_us_;
  if (drain_at_us >= 0 && began_us >= drain_at_us) {
    scheduler_.EndAll(Finish::kShutdown, "the engine is shutting down", began_us);
  }
  const StepPlan& plan = scheduler_.Plan(began_us);
  for (const Scheduler::Move& move : scheduler_.TakeMoves()) {
    move.started ? inbox_.OnStarted(move.id) : inbox_.OnRequeued(move.id);
  }
  const bool worked = !plan.slices.empty();
  if (worked) RunPlan(plan, began_us);
  TellEnded();
  UpdateRates(clock_.now_us());
  if (worked && options_.self_check_every > 0 &&
      scheduler_.totals().num_steps % options_.self_check_every == 0) {
    SelfCheck();
  }
  return worked;
}

void EngineCore::TakeMail(int64_t now_us) {
  Inbox::Mail mail = inbox_.Take();
  for (std::unique_ptr<Sequence>& sequence : mail.arrived) {
    const SeqId id = sequence->id;
    const std::shared_ptr<EventSink> sink = sequence->sink;
    sequence->reader_room = sink->Room();
    scheduler_.Add(std::move(sequence), now_us);
    if (sink->Room() <= 0) Pause(id, sink, now_us);
  }
  for (const SeqId id : mail.cancelled) scheduler_.End(id, Finish::kCancelled, "", now_us);
}

void EngineCore::Pause(SeqId id, const std::shared_ptr<EventSink>& sink, int64_t now_us) {
  scheduler_.SetPaused(id, true, now_us);
  books_->behind.push_back({id, sink, now_us});
}

void EngineCore::WatchReaders(int64_t now_us) {
  std::erase_if(books_->behind, [&](const Books::Behind& behind) {
    if (behind.sink->Room() > 0) {
      scheduler_.SetPaused(behind.id, false, now_us);
      return true;
    }
    if (now_us - behind.since_us < options_.slow_reader_us) return false;
    scheduler_.End(behind.id, Finish::kSlowReader, "nobody read its tokens", now_us);
    return true;
  });
}

void EngineCore::RunPlan(const StepPlan& plan, int64_t began_us) {
  const auto rows = static_cast<size_t>(plan.num_logits_rows);
  const auto num_tokens = static_cast<double>(plan.tokens.size());  // the plan ends with Commit
  const size_t num_logits = rows * static_cast<size_t>(backend_.vocab_size());
  if (logits_.size() < num_logits) logits_.resize(num_logits);
  const int64_t run_us = clock_.now_us();
  masks_.Begin(plan, scheduler_.planned());
  const Status status = backend_.Run(plan, std::span(logits_).first(num_logits));
  const int64_t ran_us = clock_.now_us();
  masks_.End();
  if (!status.ok() && !HEARTH_MUTANT(33)) {
    ++books_->num_backend_failures;
    scheduler_.Fail(status, ran_us);
    return;
  }
  const std::span<const SliceOutcome> outcomes = step_sampler_.Sample(
      plan, scheduler_.planned(), std::span<const float>(logits_).first(num_logits), masks_);
  const int64_t sampled_us = clock_.now_us();
  scheduler_.Commit(outcomes, sampled_us, sampled_us - began_us);
  TellTokens(outcomes, sampled_us);
  const int64_t done_us = clock_.now_us();
  Books& books = *books_;
  if (books.step_us.size() < kStepsKept) books.step_us.push_back(0);
  books.step_us[books.next_step % kStepsKept] = done_us - began_us;
  ++books.next_step;
  const auto place =
      std::lower_bound(kStepBoundsUs.begin(), kStepBoundsUs.end(), done_us - began_us);
  ++books.step_histogram.counts[static_cast<size_t>(place - kStepBoundsUs.begin())];
  books.step_histogram.sum_us += done_us - began_us;
  const auto own = static_cast<double>((done_us - began_us) - (ran_us - run_us));
  const auto fade = [&](double& mean, double value) {
    mean += (value - mean) * (books.next_step == 1 ? 1 : 0.05);
  };
  fade(books.own_us, own);
  fade(books.mean_us, static_cast<double>(done_us - began_us));
  fade(books.mean_tokens, num_tokens);
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
      TokenEvent event{outcomes[i].tokens[j], index++};
      if (j < outcomes[i].logprobs.size()) {
        event.logprobs = std::make_shared<const Logprobs>(outcomes[i].logprobs[j]);
      }
      s.sink->OnToken(event);
    }
    if (HEARTH_MUTANT(34) && s.record.finish != Finish::kNone) {
      s.sink->OnToken({outcomes[i].tokens.back(), index - 1});
    }
    s.reader_room = s.sink->Room();  // it can only grow until more is told
    if (s.record.finish == Finish::kNone && s.reader_room <= 0) Pause(s.id, s.sink, now_us);
  }
}

void EngineCore::TellEnded() {
  Books& books = *books_;
  for (const std::unique_ptr<Sequence>& sequence : scheduler_.TakeEnded()) {
    const RequestRecord& record = sequence->record;
    ++books.num_ended;
    ++books.num_finished[static_cast<size_t>(record.finish)];
    books.prompt_tokens += record.num_prompt;
    books.cached_tokens += record.num_cached;
    books.generated_tokens += record.num_generated;
    books.waited_us += record.waited_us;
    if (record.num_generated > 0) {
      ++books.num_first_tokens;
      books.ttft_us += record.first_token_us - record.arrived_us;
    }
    inbox_.OnEnded(record.id);
    if (sequence->request.pools && record.finish == Finish::kLength) {
      sequence->sink->OnEmbedding(Embedding(sequence->pool));
    }
    sequence->sink->OnFinish(record);
  }
}

void EngineCore::UpdateRates(int64_t now_us) {
  Books& books = *books_;
  const SchedulerTotals& totals = scheduler_.totals();
  const int64_t last_us = books.last_rates_us < 0 ? now_us : books.last_rates_us;
  const double elapsed_s = static_cast<double>(std::max<int64_t>(now_us - last_us, 0)) * 1e-6;
  // What is promised is about a machine at work: a night without requests made it no slower.
  const double worked_s =
      std::min(elapsed_s, static_cast<double>(now_us - books.busy_since_us) * 1e-6);
  const auto prefill = static_cast<double>(totals.prefill_tokens - books.seen.prefill_tokens);
  books.prefill.Add(prefill, elapsed_s);
  books.decode.Add(static_cast<double>(totals.decode_tokens - books.seen.decode_tokens), elapsed_s);
  books.ended.Add(static_cast<double>(books.num_ended - books.num_ended_seen), worked_s);
  if (prefill > 0) {
    books.chunk_tokens = 0.98 * books.chunk_tokens + prefill;
    books.chunk_us = 0.98 * books.chunk_us + worked_s * 1e6;
  }
  books.last_rates_us = now_us;
  books.seen = totals;
  books.num_ended_seen = books.num_ended;
  const SchedulerLoad load = scheduler_.load();
  AdmissionRates rates;
  rates.backlog_tokens = load.backlog_tokens;
  rates.prefill_us_per_token = books.chunk_tokens > 0 ? books.chunk_us / books.chunk_tokens : 0;
  rates.ended_per_s = books.ended.per_s();
  rates.is_full = load.is_full;
  inbox_.SetRates(rates);
}

bool EngineCore::is_idle() const {
  const SchedulerLoad load = scheduler_.load();
  return load.num_running + load.num_waiting == 0;
}

int64_t EngineCore::SleepUs() const { return is_idle() ? -1 : kReaderPollUs; }

void EngineCore::SelfCheck() const {
  const Status status = kv_.SelfCheck();
  if (!status.ok()) std::fprintf(stderr, "KV self-check: %s\n", status.message().c_str());
  HEARTH_CHECK(status.ok());
}

namespace {

SequenceRow RowOf(const Sequence& s, int64_t now_us) {
  SequenceRow row;
  row.id = s.id;
  row.tenant = s.request.domain.tenant;
  row.priority = s.request.priority;
  row.state = s.paused          ? SequenceRow::State::kPaused
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
  const Books& books = *books_;
  EngineSnapshot snapshot;
  snapshot.at_us = clock_.now_us();
  snapshot.is_draining = drain_at_us_ >= 0;
  snapshot.limits = {options_.scheduler.max_sequences, options_.admission.max_requests,
                     options_.admission.max_tokens, options_.scheduler.itl_target_us};
  snapshot.load = scheduler_.load();
  snapshot.totals = scheduler_.totals();
  const KvLayout& layout = kv_.layout();
  snapshot.block_tokens = layout.block_tokens;
  for (int group = 0; group < layout.num_groups(); ++group) {
    snapshot.kv.push_back({NameOfGroup(layout, group), layout.group(group).window,
                           layout.group(group).block_bytes, kv_.counts(group)});
  }
  snapshot.step_model = scheduler_.step_model().coefficients();
  std::vector<int64_t> times = books.step_us;
  if (!times.empty()) {
    snapshot.steps.last_us = times[(books.next_step - 1) % kStepsKept];
    std::sort(times.begin(), times.end());
    snapshot.steps.p50_us = times[times.size() / 2];
    snapshot.steps.p99_us = times[times.size() * 99 / 100];
    snapshot.steps.max_us = times.back();
  }
  snapshot.steps.mean_own_us = books.own_us;
  snapshot.steps.mean_us = books.mean_us;
  snapshot.steps.mean_tokens = books.mean_tokens;
  snapshot.step_histogram = books.step_histogram;
  snapshot.masks = masks_.totals();
  snapshot.prefill_tokens_per_s = books.prefill.per_s();
  snapshot.decode_tokens_per_s = books.decode.per_s();
  const Inbox::Counts counts = inbox_.counts();
  snapshot.num_admitted = counts.num_admitted;
  snapshot.num_refused = counts.num_refused;
  snapshot.num_backend_failures = books.num_backend_failures;
  snapshot.num_finished = books.num_finished;
  snapshot.prompt_tokens = books.prompt_tokens;
  snapshot.cached_tokens = books.cached_tokens;
  snapshot.generated_tokens = books.generated_tokens;
  snapshot.waited_us = books.waited_us;
  snapshot.ttft_us = books.ttft_us;
  snapshot.num_first_tokens = books.num_first_tokens;
  for (const Sequence* s : scheduler_.running()) {
    snapshot.rows.push_back(RowOf(*s, snapshot.at_us));
  }
  for (const Sequence* s : scheduler_.queue().SomeWaiting(kWaitingRows)) {
    snapshot.rows.push_back(RowOf(*s, snapshot.at_us));
  }
  return snapshot;
}

}  // namespace hearth
