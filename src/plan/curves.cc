// SPDX-License-Identifier: Apache-2.0
// A plan between and beyond its cases, for its pictures: rates by users, by context, by prompt.
#include <algorithm>

#include "plan/plan.h"

namespace hearth {
namespace {

constexpr int kMostUsers = 64;

// Powers of two and their middles, up to `most`, and `most` itself.
std::vector<int> Steps(int least, int most) {
  std::vector<int> out;
  for (int step = least; step < most; step *= 2) {
    out.push_back(step);
    if (step > 1 && step * 3 / 2 < most) out.push_back(step * 3 / 2);
  }
  out.push_back(most);
  return out;
}

}  // namespace

void AddCurves(const PlanInput& input, PlanRecord& record) {
  const ModelTimes& times = input.times;
  for (const int users : Steps(1, std::min(kMostUsers, input.max_sequences))) {
    record.by_users.push_back({users, times.DecodeRate(users, 0), times.StepSeconds(users, 0)});
  }
  const int context = record.fit.context();
  constexpr int kLeast = 256;
  if (context <= kLeast) return;
  for (const int depth : Steps(kLeast, context)) {
    record.by_depth.push_back({depth, times.DecodeRate(1, depth), times.StepSeconds(1, depth)});
    const PhaseWork work =
        input.work.ByPhase({BenchKind::kPrefill, 1, 0, depth}, input.kv, input.chunk);
    const double seconds = times.PrefillSeconds(work, depth);
    record.by_prompt.push_back({depth, depth / seconds, seconds});
  }
}

}  // namespace hearth
