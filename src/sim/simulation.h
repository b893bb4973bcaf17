// SPDX-License-Identifier: Apache-2.0
// Plays a scenario on the real engine loop, scheduler and KV room under a clock of its own, and
// watches every promise they make. docs/simulation.md lists the promises.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/clock.h"
#include "engine/engine_core.h"
#include "sim/random.h"
#include "sim/scenario.h"
#include "sim/sim_backend.h"
namespace hearth {

// When the clock starts: zero means "did not happen" in records.
inline constexpr int64_t kStartUs = 1'000'000;

// What became of one client.
struct SimFate {
  bool arrived = false;
  Admission admission;
  std::vector<Token> prompt;  // with what it follows
  std::vector<Token> heard;   // tokens, as they came
  std::vector<int64_t> heard_us;
  int num_finishes = 0;
  RequestRecord record;
  int64_t arrived_us = 0, cancelled_us = -1;
  bool went_bad = false;  // the backend gave it numbers that are none
  size_t heard_before_bad = 0;
  bool was_in_failed_step = false;
  bool was_full = false;  // its reader left no room at some time
};

struct SimOutcome {
  std::string failure;  // the first promise that was broken; empty when all were kept
  int64_t num_steps = 0, num_tokens = 0, num_failed_steps = 0;
  int64_t longest_step_us = 0, total_us = 0;
  int64_t longest_turn_us = 0;  // a step with those in its breaks
  int64_t lost_us = 0;          // to stalls and jumps of the clock
  uint64_t digest = 0;          // of everything that happened, in order
  std::vector<SimFate> fates;
  int max_sequence_tokens = 0;
  EngineSnapshot last;
};

// Thread: one. Plays once.
class Simulation : private SimWorld {
 public:
  using Trace = std::function<void(int64_t now_us, const std::string& what)>;
  // `trace` hears everything that happens; null: nobody does.
  explicit Simulation(const SimScenario& scenario, Trace trace = nullptr);
  ~Simulation() override;
  SimOutcome Play();

 private:
  class Sink;
  enum class Kind : uint8_t { kArrive, kCancel, kRead, kDrain, kTransfer };
  struct Event {
    int64_t at_us = 0;
    uint64_t order = 0;
    Kind kind = Kind::kArrive;
    int client = -1;
    TransferId transfer = 0;
    bool operator>(const Event& other) const {
      return at_us != other.at_us ? at_us > other.at_us : order > other.order;
    }
  };

  Course OnStep(const StepPlan& plan) override;
  void Pass(int64_t us) override { DeliverUntil(clock_.now_us() + us); }
  Status OnCopy() override;
  bool GoesBad(SeqId seq, int position) override;
  uint64_t SaltOf(SeqId seq) const override;

  void Schedule(int64_t at_us, Kind kind, int client);
  void Deliver(const Event& event);
  void DeliverUntil(int64_t us);  // and moves the clock there
  void Arrive(int client);
  void OnEnded(int client);
  void CheckPlan(const StepPlan& plan);
  void CheckAfterStep();
  void CheckTables();
  void CheckOldest();
  bool StepAndCheckTier();
  void CheckTier(int64_t began_us);
  SeqId Oldest() const;
  void Rest();
  void Broken(const std::string& what);
  void TellState();
  void Note(uint64_t what) { outcome_.digest = MixBits(outcome_.digest ^ what) + what; }
  template <class... Args>
  void Tell(const char* format, Args... args);

  const SimScenario& scenario_;
  Trace trace_;
  VirtualClock clock_;
  SimRandom random_;
  SimBackend backend_;
  std::unique_ptr<SimTier> tier_;
  std::unique_ptr<EngineCore> core_;
  std::vector<std::shared_ptr<Sink>> sinks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::vector<int>> followers_;
  std::unordered_map<SeqId, int> clients_;  // by id, those let in
  std::vector<int> planned_;                // clients of the step that runs
  std::vector<int> uses_;                   // scratch of CheckTables
  uint64_t next_order_ = 0;
  int num_open_ = 0;  // let in and not ended
  SeqId oldest_{};    // that runs and is not paused, after the last step
  SimOutcome outcome_;
};

// What must be true when everything has ended; empty when it is. The model is the backend's.
std::string CheckFates(const SimScenario& scenario, const SimModel& model,
                       const SimOutcome& outcome);

}  // namespace hearth
