// SPDX-License-Identifier: Apache-2.0
// The loop's body, one step at a time and without a thread: Engine's thread calls it, and so does
// the simulation under its own clock.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "engine/clock.h"
#include "engine/inbox.h"
#include "engine/mask_fills.h"
#include "engine/scheduler.h"
#include "engine/side_thread.h"
#include "engine/snapshot.h"
#include "engine/step_sampler.h"
#include "kv/kv_space.h"
namespace hearth {

struct EngineOptions {
  SchedulerOptions scheduler;
  AdmissionLimits admission;
  KvPolicy kv;
  TierOptions tier;
  int64_t slow_reader_us = 30'000'000;  // paused for longer than this, a sequence is dropped
  int self_check_every = 0;             // steps; 0: only when idle
  // Sees the logits every token was sampled from, before it is heard. For tests; null otherwise.
  StepSampler::OnLogits on_logits;
};

// Thread: Submit, Cancel and Drain from any; the rest from the one that calls Step.
class EngineCore {
 public:
  // Masks are filled on `beside` while the backend computes; without it after the backend, on the
  // thread that calls Step.
  // `tier`, when there is one, keeps blocks that find no room in the backend's memory.
  // `ahead`, when there is one, fills the masks that steps would wait for; it wakes the inbox.
  // `on_counted`, when there is one, is called within Step when requests have ended and are
  // counted, before anybody hears of their ends.
  EngineCore(Backend& backend, const EngineOptions& options, const Clock& clock,
             SideThread* beside = nullptr, Tier* tier = nullptr, MaskAhead* ahead = nullptr,
             std::function<void()> on_counted = nullptr);
  ~EngineCore();  // whatever is still there ends with kShutdown

  // Lets the request in or says why not, at once. The sink hears of it only if it was let in.
  Admission Submit(Request request, std::shared_ptr<EventSink> sink);
  void Cancel(SeqId id);
  // Refuses what comes from now on; what is there may go on for `bound_us`, then it ends with
  // kShutdown.
  void Drain(int64_t bound_us);

  // Reads the inbox, plans, runs, samples, commits and emits. False when there was nothing to
  // compute.
  bool Step();
  // Nothing waits or runs.
  bool is_idle() const;
  // How long the caller may sleep after a Step that said false, unless a message comes; -1: for
  // ever.
  int64_t SleepUs() const;

  Inbox& inbox() { return inbox_; }
  const KvSpace& kv() const { return kv_; }
  const Scheduler& scheduler() const { return scheduler_; }
  const TierTraffic* traffic() const { return traffic_.get(); }  // null: there is no tier
  EngineSnapshot TakeSnapshot() const;
  // Stops the program when the counts of KV blocks do not add up.
  void SelfCheck() const;

 private:
  struct Stats;
  void ReadInbox(int64_t now_us);
  void Pause(SeqId id, const std::shared_ptr<EventSink>& sink, int64_t now_us);
  void WatchReaders(int64_t now_us);
  void FillAhead(Sequence& sequence, int64_t now_us);
  void TakeFilled(int64_t now_us);
  void TakeTransfers(std::vector<Inbox::Transfer> transfers, int64_t now_us);
  void RunPlan(const StepPlan& plan, int64_t began_us);
  Result<std::span<const RowResult>> RunWithBreaks(const StepPlan& plan, int64_t& broken_us);
  bool RunBreak(int64_t began_us);
  void CountMoves();
  void Book(const StepPlan& plan, std::span<const RowResult> rows, MaskFills& masks,
            int64_t began_us, int64_t run_us);
  void RunCopies(const StepPlan& plan);
  void TellTokens(std::span<const SliceOutcome> outcomes, int64_t now_us);
  void CountEnded(const RequestRecord& record);
  void TellEnded();
  void UpdateRates(int64_t now_us);
  void TellWatch();

  Backend& backend_;
  const EngineOptions options_;
  const Clock& clock_;
  KvSpace kv_;
  Tier* const tier_;
  std::unique_ptr<TierTraffic> traffic_;
  Scheduler scheduler_;
  Inbox inbox_;
  MaskFills masks_;
  MaskFills break_masks_;  // of steps in the breaks of others; filled by the loop itself
  MaskAhead* const ahead_;
  std::function<void()> on_counted_;
  StepSampler step_sampler_;
  std::atomic<int64_t> drain_at_us_{-1};  // when what is left must go; -1: not draining
  std::unique_ptr<Stats> stats_;
};

}  // namespace hearth
