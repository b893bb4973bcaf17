// SPDX-License-Identifier: Apache-2.0
#include "plan/headline.h"

#include <algorithm>

#include "base/result.h"

namespace hearth {
namespace {

bool IsProduct(size_t phase) {
  const auto which = static_cast<StepPhase>(phase);
  return which != StepPhase::kAttention && which != StepPhase::kSmall;
}

struct Split {
  double products = 0, rest = 0, bytes = 0;  // of one step
};

Split SplitOf(const CaseTime& decode) {
  Split split;
  for (size_t i = 0; i < kNumPhases; ++i) {
    (IsProduct(i) ? split.products : split.rest) += decode.seconds[i];
    if (IsProduct(i)) split.bytes += decode.work.phases[i].bytes;
  }
  const double steps = std::max(1, decode.what.tokens);
  return {split.products / steps, split.rest / steps, split.bytes / steps};
}

}  // namespace

// Projections, rope with K and V, attention and its output; gate with up, down; experts also have a
// router and activations of several rows, and are added up.
int LoopsPerStep(int layers, int n_experts) { return (n_experts > 0 ? 9 : 6) * layers + 1; }

Headline HeadlineOf(const ModelTimes& here, const ModelTimes& there, const MachineRates& rates,
                    const LoopCost& loop, int loops_per_step) {
  const Split measured = SplitOf(here.decode.front()), moved = SplitOf(there.decode.front());
  Headline out;
  out.bytes = measured.bytes;
  out.read_share =
      std::min(1.0, measured.bytes / (measured.products * std::max(1.0, here.stream_here)));
  out.serial_s = moved.rest;
  // What was measured already holds the loop ends of the threads here.
  out.loops_s = loops_per_step * loop.look_seconds * std::max(0, rates.threads - loop.threads);
  const double fixed = out.serial_s + out.loops_s;
  const double left = 1 / out.wanted - fixed;
  out.least_stream = left > 0 ? out.bytes / (out.read_share * left) : 0;
  const double step = moved.products + fixed;
  out.rate = 1 / step;
  out.serial_share = fixed / step;
  return out;
}

std::string HeadlineText(const Headline& h) {
  const std::string why = Printf(
      "%.2f GB read per token at %.0f %% of the stream read, %.2f ms of small operations and "
      "attention, %.2f ms more for loop ends on more cores",
      h.bytes / 1e9, 100 * h.read_share, 1e3 * h.serial_s, 1e3 * h.loops_s);
  if (h.least_stream <= 0) {
    return Printf("%.0f tokens/s for one user cannot be reached by bandwidth alone: %s", h.wanted,
                  why.c_str());
  }
  return Printf(
      "%.0f tokens/s for one user need reads of %.0f GB/s (a label of %.0f GB/s): %s; this machine "
      "gives %.1f tokens/s, and %.1f %% of its step is not reading",
      h.wanted, h.least_stream / 1e9, h.least_stream / kShareOfLabel / 1e9, why.c_str(), h.rate,
      100 * h.serial_share);
}

}  // namespace hearth
