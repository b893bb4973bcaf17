// SPDX-License-Identifier: Apache-2.0
// Decides, each step, which tokens are computed. Pure: time is passed in; no threads, no I/O. The
// rules, in order, are in docs/engine.md.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "engine/chunk_control.h"
#include "engine/fair_queue.h"
#include "engine/sequence.h"
#include "engine/step_sampler.h"
#include "engine/tier_traffic.h"
#include "kv/kv_space.h"
namespace hearth {

struct SchedulerOptions {
  int max_sequences = 256;     // running at a time
  int max_step_tokens = 2048;  // what the backend takes
  int max_context = 131072;    // of the model
  ExpertCounts experts;        // of the model, which the time of a step depends on
  // A prompt gets at least this many tokens of a step, whatever the clock says, so that it always
  // moves. 32 would cost SmolLM2 beside 8 streams 170 ms, more than streams are promised: p99 was
  // 2.2 times a bound of 150 ms, and is 1.3 times with 8.
  int min_chunk = 8;
  // The longest step while somebody listens to a stream, and while nobody does (then a step only
  // delays those who arrive during it, and cancels).
  int64_t itl_target_us = 200'000;
  int64_t quiet_step_us = 1'000'000;
  int64_t aging_us = 30'000'000;     // of waiting raise a request by one class
  int64_t patience_us = 10'000'000;  // without room before a request keeps its turn to start
  int quantum = 128;                 // tokens of a prompt at a time, while others may be next
  int max_preemptions = 3;           // per request
  // Blocks kept free per running sequence when another one starts: 32 tokens each to grow before
  // somebody has to be preempted.
  int headroom_blocks = 2;
  BackendCapabilities backend;   // what rows may be asked for, which chunks it prefers
  bool asks_all_logits = false;  // whatever the backend can do: somebody looks at them
  bool speculates = true;        // drafts are tried where they pay: docs/speculation.md
  int fixed_draft = 0;           // for tests and measurements: so many tokens, paying or not; 0: no
};

// Rows of results that a step asks for at most.
int WidestStepRows(const SchedulerOptions& options);

// What is asked of the machine and not done yet.
struct SchedulerLoad {
  int num_waiting = 0, num_running = 0, num_paused = 0;
  int64_t waiting_tokens = 0;  // prompts that wait, counted as if nothing of them was cached
  int64_t backlog_tokens = 0;  // of running sequences, beyond the one each decodes
  bool is_full = false;        // the next one to start has to wait for another one to end
};

struct SchedulerTotals {
  int64_t num_steps = 0, num_preemptions = 0;
  int64_t num_breaks = 0;  // of the steps, those that ran while another one was left
  int64_t prefill_tokens = 0, decode_tokens = 0;  // computed
  int64_t cached_tokens = 0, recomputed_tokens = 0;
  int64_t loaded_tokens = 0;                        // of the cached ones, those that a tier brought
  int64_t drafted_tokens = 0, accepted_tokens = 0;  // decode_tokens has only the accepted ones
};

// Thread: engine only. One step is Plan, then either Commit or Fail; everything else is called
// between steps.
class Scheduler {
 public:
  // `traffic`, when there is a tier, outlives the scheduler.
  Scheduler(const SchedulerOptions& options, KvSpace& kv, TierTraffic* traffic = nullptr);
  ~Scheduler();

  // The sequence waits. Its max_total must fit (see max_sequence_tokens).
  void Add(std::unique_ptr<Sequence> sequence, int64_t now_us);
  // Ends it now, whatever it is doing; unknown ids are ignored. Its published blocks stay cached.
  void End(SeqId id, Finish why, const std::string& detail, int64_t now_us);
  void EndAll(Finish why, const std::string& detail, int64_t now_us);
  void SetPaused(SeqId id, bool paused, int64_t now_us);
  // Null when it has ended.
  Sequence* Find(SeqId id) {
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : found->second.get();
  }
  // A sequence's load ended; it may start now, with or without a prefix.
  void OnLoaded(TierTraffic::Loaded loaded, int64_t now_us);

  // Ends what expired, then chooses the step. An empty plan means there is nothing to do. The plan
  // borrows from the scheduler until Commit or Fail.
  const StepPlan& Plan(int64_t now_us);
  // The sequences of the plan's slices, in their order; good until TakeEnded.
  std::span<Sequence* const> planned() const { return step_->planned; }
  // Books the step: for every slice what its rows came to. Slices that reach the end of their
  // sequence's tokens say at least one, or have an error.
  void Commit(std::span<const SliceOutcome> outcomes, int64_t now_us, int64_t step_us);
  // The step did not happen: the sequences in it end with an error, and nothing of it is cached.
  void Fail(const Status& status, int64_t now_us);

  // A step under way may be left between two layers for those who used less of the machine than
  // those in it (scheduler_breaks.cc). When that should be, given that the step, or what was not
  // charged of it yet, began at `since_us`; the largest number: never.
  int64_t BreakAtUs(int64_t since_us) const;
  // Part of the step's time has passed: it is charged to whom it served.
  void ChargeStep(int64_t us);
  // The step under way was left. Plans one for the others, to be ended by Commit or Fail and then
  // EndBreak; an empty plan needs EndBreak alone. Until then ends of those in the step that was
  // left are put off until it is done.
  const StepPlan& PlanBreak(int64_t now_us);
  void EndBreak(int64_t took_us);

  // Those that ended since the last call, stripped of their blocks, their records complete.
  std::vector<std::unique_ptr<Sequence>> TakeEnded();

  // The most tokens, prompt and generation together, that one sequence can ever have.
  int max_sequence_tokens() const { return max_sequence_tokens_; }
  SchedulerLoad load() const;
  const SchedulerTotals& totals() const { return totals_; }
  const StepModel& step_model() const { return chunks_.model(); }
  const DraftControl& draft_control() const { return draft_control_; }
  std::span<Sequence* const> running() const { return running_; }  // oldest start first
  std::span<Sequence* const> loading() const { return loading_; }  // wait for a tier
  const FairQueue& queue() const { return queue_; }
  // Who went from waiting to running (or back), in order, since the last call.
  struct Move {
    SeqId id{};
    bool started = false;
  };
  std::vector<Move> TakeMoves() { return std::exchange(moves_, {}); }

 private:
  // A step that is planned or under way.
  struct Step {
    StepPlan plan;
    std::vector<Sequence*> planned;
    StepShape shape;
    bool is_apart = false;  // for some tenants, while others wait
    bool ends_prompt = false;
    int others = 0;         // streams that wait, or come along when their tokens find room
    bool has_more = false;  // prompts had more to give than the step had time for
    // Whose time it takes, in shares of 1.
    struct Share {
      uint32_t tenant = 0;
      double share = 0;
    };
    std::vector<Share> shares;
    int urgency = 0;         // the most urgent class in it
    int64_t charged_us = 0;  // of its time
    int64_t broken_us = 0;   // time of the steps in its breaks
    ChunkControl::UnderWay chunk;
  };
  void BeginPlan(int64_t now_us);
  void DropExpired(int64_t now_us);
  // Of tenants that used less than `below`.
  void PlanDecodes(int64_t now_us, double below = FairQueue::kEverybody);
  void PlanPrefills(int64_t now_us, double below = FairQueue::kEverybody);
  int PrefillShare(const Sequence& sequence, int left_tokens);
  // Adds `count` tokens to the sequence's share of the plan; 0 when there is no room for any.
  int Grant(Sequence& sequence, int count, int64_t now_us);
  void CountShape();
  StepShape StreamsOf(const Step& step) const;
  void BuildPlan(int64_t now_us);

  // Steps for some (scheduler_breaks.cc).
  bool PlanApart(int64_t now_us);
  double LeastUsedUs(int64_t now_us) const;
  double LevelUs(const Step& step) const;
  void ShareOut(int64_t now_us);
  int64_t BreaksWithinUs(const StepShape& shape) const;
  void EndLate(int64_t now_us);

  // Speculation (scheduler_drafts.cc).
  void PlanDrafts();
  void PlanDraft(Sequence& sequence, int most);
  int BookDraft(Sequence& sequence, const SliceOutcome& outcome);

  // Loading (scheduler_loads.cc).
  bool Load(Sequence& sequence, int64_t now_us);
  void LoadAhead(int64_t now_us);
  void CheckAhead(Sequence& sequence);
  void DropAhead(Sequence& sequence);
  void NoteParts(Sequence& sequence, std::span<const int> from) const;
  int PlaceStaged(Sequence& sequence, int num_matched, int limit);
  static bool IsInLine(const Sequence& sequence);

  void SitOut(Sequence& sequence);
  void Unplan(Sequence& sequence);

  // Starting (scheduler_room.cc).
  Sequence& Turn(Sequence& sequence, int64_t now_us);
  bool Start(Sequence& sequence, int64_t now_us);
  bool TryStart(Sequence& sequence, int64_t now_us);
  int Available(int group) const;
  int WorstCase(int group, const Sequence& sequence) const;
  bool HasRoomFor(Sequence& sequence, int num_matched, std::span<const int> before) const;
  bool ReservationsHoldWith(const Sequence& sequence) const;
  int PendingBlocks() const;

  // Preemption (scheduler_room.cc).
  const Sequence* Oldest() const;
  Sequence* VictimFor(const Sequence& needy) const;
  Sequence* VictimForStart(const Sequence& newcomer) const;
  static bool IsCheaper(const Sequence& a, const Sequence& b);
  void Preempt(Sequence& victim, int64_t now_us);

  void Book(Sequence& sequence, const SeqSlice& slice, const SliceOutcome& outcome, int64_t now_us);
  void Say(Sequence& sequence, const SliceOutcome& outcome, int64_t now_us);
  // True: what it said was its last, and it is gone.
  bool EndIfDone(Sequence& sequence, const SliceOutcome& outcome, int64_t now_us);
  void KeepCheckpoints(Sequence& sequence, int before);
  void FreeFollowers(Sequence& sequence);
  void Finalise(Sequence& sequence, Finish why, const std::string& detail, int64_t now_us);

  const SchedulerOptions options_;
  KvSpace& kv_;
  TierTraffic* const traffic_;
  FairQueue queue_;  // whoever waits, or runs with more than one token to compute
  ChunkControl chunks_;
  DraftControl draft_control_;
  DraftControl::Step draft_step_;
  int max_sequence_tokens_ = 0;
  std::unordered_map<SeqId, std::unique_ptr<Sequence>> all_;
  std::vector<Sequence*> running_, loading_;
  std::deque<SeqId> newcomers_;  // that LoadAhead has not looked at; some have started or gone
  using Deadline = std::pair<int64_t, SeqId>;
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  int64_t waiting_tokens_ = 0;
  int num_paused_ = 0;

  std::array<Step, 2> steps_;
  Step* step_ = &steps_[0];
  Step* left_ = nullptr;  // the step whose break it is
  struct LateEnd {
    SeqId id{};
    Finish why = Finish::kNone;
    std::string detail;
  };
  std::vector<LateEnd> late_ends_;   // of sequences in a step under way
  int64_t streams_waited_us_ = 0;    // while steps were planned for others
  std::vector<Sequence*> decoders_;  // PlanDecodes', kept for its memory
  int left_rows_ = 0;                // that the step may still compute to score prompts
  std::vector<SeqId> sitting_out_;
  const bool asks_less_;  // than all logits, of some rows
  bool in_step_ = false;
  bool start_blocked_ = false;  // nobody more starts in this step
  bool found_no_room_ = false;  // somebody who had its turn could not
  SeqId door_{};                // who keeps its turn to start, if anybody
  std::vector<std::unique_ptr<Sequence>> ended_;
  std::vector<Move> moves_;
  SchedulerTotals totals_;
};

}  // namespace hearth
