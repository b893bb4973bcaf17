// SPDX-License-Identifier: Apache-2.0
#include "backend/step_phases.h"

namespace hearth {

PhaseTime PhaseTotals::sum() const {
  PhaseTime sum;
  for (const PhaseTime& phase : phases) {
    sum.seconds += phase.seconds;
    sum.waiting += phase.waiting;
    sum.alone += phase.alone;
  }
  return sum;
}

}  // namespace hearth
