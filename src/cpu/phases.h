// SPDX-License-Identifier: Apache-2.0
// Measures the phases of a step (backend/step_phases.h) while it runs.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>

#include "backend/step_phases.h"
namespace hearth {

// Nanoseconds. `loops` and `busy` as in ThreadPool::LoopTime.
struct PhaseReading {
  int64_t now = 0, loops = 0, busy = 0;
};

// Charges the time between two marks to the phase that the first one began. Without totals a mark
// is the test of a pointer. Thread: one at a time.
class PhaseClock {
 public:
  PhaseClock(PhaseTotals* totals, int num_workers, std::function<PhaseReading()> read)
      : totals_(totals), num_workers_(num_workers), read_(std::move(read)) {}
  void Enter(StepPhase phase) {
    if (totals_ != nullptr) Switch(phase);
  }
  void EndStep() {
    if (totals_ != nullptr) Finish();
  }
  bool on() const { return totals_ != nullptr; }
  // `on` only.
  void CountExperts(int layer, int num_distinct);

 private:
  void Switch(StepPhase phase);
  void Finish();
  void Charge();  // the time since the last mark

  PhaseTotals* totals_;
  int num_workers_;
  std::function<PhaseReading()> read_;
  bool in_step_ = false;
  StepPhase phase_ = StepPhase::kSmall;
  PhaseReading last_;
};

}  // namespace hearth
