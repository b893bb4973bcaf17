// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes: seconds of each phase, and how long workers were idle in it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>
namespace hearth {

enum class StepPhase : unsigned char {
  kProjections,  // q, k, v and the attention's output
  kAttention,
  kRouter,       // its product, the choice and the sort by expert
  kFeedForward,  // the products of the experts, or of the dense feed-forward
  kHead,
  kSmall,  // everything else: norms, quantising activations, rope, writing K and V, GLU, sums
};
inline constexpr size_t kNumPhases = 6;

struct PhaseTime {
  double seconds = 0;  // by the wall clock
  // Of those, how long a worker was idle on average: at the end of a loop that others still worked
  // on, or while the calling thread worked alone.
  double waiting = 0;
  // Also of `seconds`: the calling thread worked alone. More threads would not shorten it.
  double alone = 0;
};
// What steps took since the totals were cleared. The caller owns it and hands it to the backend,
// which writes to it during a step only.
struct PhaseTotals {
  std::array<PhaseTime, kNumPhases> phases;
  // For each layer, the distinct experts that its tokens chose, summed over the steps. A dense
  // layer counts as one expert.
  std::vector<int64_t> experts_read;
  int64_t steps = 0;

  PhaseTime& operator[](StepPhase phase) { return phases[static_cast<size_t>(phase)]; }
  const PhaseTime& operator[](StepPhase phase) const { return phases[static_cast<size_t>(phase)]; }
  PhaseTime sum() const;
};

}  // namespace hearth
