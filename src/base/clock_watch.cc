// SPDX-License-Identifier: Apache-2.0
#include "base/clock_watch.h"

namespace hearth {

bool ClockWatch::IsSettled(int64_t wall_s, int64_t steady_s) {
  const int64_t offset = wall_s - steady_s;
  if (!offset_ || offset - *offset_ > kTolerance_s || *offset_ - offset > kTolerance_s) {
    offset_ = offset;
    since_s_ = steady_s;
  }
  return steady_s - since_s_ >= settle_s_;
}

}  // namespace hearth
