// SPDX-License-Identifier: Apache-2.0
#include "cpu/phases.h"

#include <algorithm>

namespace hearth {

void PhaseClock::Charge() {
  const PhaseReading now = read_();
  if (in_step_) {
    const int64_t wall = now.now - last_.now;
    // Outside the loops one worker, the caller, is busy.
    const int64_t alone = wall - (now.loops - last_.loops);
    const int64_t busy = now.busy - last_.busy + alone;
    // A worker's share may begin a moment before the caller's clock does.
    const int64_t idle = std::max<int64_t>(0, num_workers_ * wall - busy);
    PhaseTime& total = (*totals_)[phase_];
    total.seconds += 1e-9 * static_cast<double>(wall);
    total.waiting += 1e-9 * static_cast<double>(idle) / num_workers_;
    total.alone += 1e-9 * static_cast<double>(alone);
  }
  last_ = now;
}

void PhaseClock::Switch(StepPhase phase) {
  Charge();
  in_step_ = true;
  phase_ = phase;
}

void PhaseClock::Finish() {
  Charge();
  in_step_ = false;
  ++totals_->steps;
}

void PhaseClock::CountExperts(int layer, int num_distinct) {
  std::vector<int64_t>& read = totals_->experts_read;
  const auto index = static_cast<size_t>(layer);
  if (read.size() <= index) read.resize(index + 1);
  read[index] += num_distinct;
}

}  // namespace hearth
