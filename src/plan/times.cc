// SPDX-License-Identifier: Apache-2.0
#include "plan/times.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace hearth {
namespace {

// Above this share of the time that reading alone would take, a phase is bound by memory. Kernels
// that are, reach 0.7 to 1.0 of the stream read; those that compute stay below a half.
constexpr double kMemoryBound = 0.6;
// Of the stream read, what a product reaches once arithmetic no longer bounds it.
constexpr double kReadEfficiency = 0.85;

bool IsProduct(size_t phase) {
  const auto which = static_cast<StepPhase>(phase);
  return which == StepPhase::kProjections || which == StepPhase::kRouter ||
         which == StepPhase::kFeedForward || which == StepPhase::kHead;
}

double Ratio(double whole, double part) { return part > 0 ? whole / part : 1; }

int StepsOf(const BenchCase& what) { return what.kind == BenchKind::kDecode ? what.tokens : 1; }

bool IsMemoryBound(const Work& work, double seconds, double stream) {
  return work.bytes / stream >= kMemoryBound * seconds;
}

// Seconds for each operation of a prompt's phase: what the arithmetic of other cases takes at
// least.
double SecondsPerFlop(const CaseTime& prefill, size_t phase) {
  const double flops = prefill.work.phases[phase].flops;
  return flops > 0 ? prefill.seconds[phase] / flops : 0;
}

struct Change {
  double memory = 1, arithmetic = 1;  // how many times as fast
  double stream = 0;                  // there
};

CaseTime Changed(const CaseTime& here, const ModelTimes& times, const Change& change) {
  CaseTime there = here;
  const bool is_decode = here.what.kind == BenchKind::kDecode;
  for (size_t i = 0; i < kNumPhases; ++i) {
    const Work& work = here.work.phases[i];
    double& seconds = there.seconds[i];
    if (!IsProduct(i)) {
      const bool is_small = static_cast<StepPhase>(i) == StepPhase::kSmall;
      if (!is_small || !is_decode) seconds /= change.arithmetic;
      continue;
    }
    if (IsMemoryBound(work, seconds, times.stream_here)) {
      const double least = work.flops * SecondsPerFlop(times.prefill, i) / change.arithmetic;
      seconds = std::max(seconds / change.memory, is_decode ? std::min(least, seconds) : 0);
    } else {
      const double least = work.bytes / (kReadEfficiency * change.stream);
      seconds = std::max(seconds / change.arithmetic, least);
    }
  }
  return there;
}

}  // namespace

double CaseTime::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

CaseTime Whole(const BenchCase& what, const PhaseSeconds& part, const PhaseWork& part_work,
               const PhaseWork& work, double layers) {
  CaseTime whole{what, part, work};
  for (size_t i = 0; i < kNumPhases; ++i) {
    const Work &all = work.phases[i], &some = part_work.phases[i];
    if (IsProduct(i)) {
      whole.seconds[i] *= Ratio(all.bytes, some.bytes);
    } else if (static_cast<StepPhase>(i) == StepPhase::kAttention) {
      whole.seconds[i] *= Ratio(all.flops, some.flops);
    } else {
      whole.seconds[i] *= layers;
    }
  }
  return whole;
}

double ModelTimes::SecondsPerPosition() const {
  if (!deep || deep->what.depth <= 0) return 0;
  const double plain = decode.front().total() / StepsOf(decode.front().what);
  return std::max(0.0, deep->total() / StepsOf(deep->what) - plain) / deep->what.depth;
}

double ModelTimes::StepSeconds(int sequences, int depth) const {
  HEARTH_CHECK(!decode.empty());
  const auto at = [&](size_t i) { return decode[i].total() / StepsOf(decode[i].what); };
  double step = at(0);
  if (decode.size() > 1 && sequences > 1) {
    size_t right = 1;
    while (right + 1 < decode.size() && decode[right].what.sequences < sequences) ++right;
    const double low = decode[right - 1].what.sequences, high = decode[right].what.sequences;
    step = at(right - 1) + (at(right) - at(right - 1)) * (sequences - low) / (high - low);
  }
  return step + SecondsPerPosition() * depth * sequences;
}

double ModelTimes::DecodeRate(int sequences, int depth) const {
  return sequences / StepSeconds(sequences, depth);
}

double ModelTimes::PrefillSeconds(const PhaseWork& work, int tokens) const {
  double seconds = 0;
  const double more = Ratio(tokens, prefill.what.tokens);
  for (size_t i = 0; i < kNumPhases; ++i) {
    const bool is_attention = static_cast<StepPhase>(i) == StepPhase::kAttention;
    const bool is_head = static_cast<StepPhase>(i) == StepPhase::kHead;
    const double times =
        is_attention ? Ratio(work.phases[i].flops, prefill.work.phases[i].flops) : more;
    seconds += prefill.seconds[i] * (is_head ? 1 : times);
  }
  return seconds;
}

TimingModel ModelTimes::Timing() const {
  using Points = std::vector<TimingModel::Point>;
  const auto add = [](Points& points, double at, double us) {
    if (points.empty() || at > points.back().tokens) points.push_back({at, us});
  };
  const auto seconds = [](const CaseTime& time, StepPhase phase) {
    return time.seconds[static_cast<size_t>(phase)];
  };
  Points points, head;
  for (const CaseTime& each : decode) {
    const double own = seconds(each, StepPhase::kHead), steps = StepsOf(each.what);
    add(points, each.what.sequences, 1e6 * (each.total() - own) / steps);
    add(head, each.what.sequences, 1e6 * own / steps);
  }
  // The prompt's own looks back are counted by position like everybody's, at what they take when
  // many tokens look back together.
  const double per_position = 1e6 * SecondsPerPosition();
  const double tokens = prefill.what.tokens, looks = tokens * (tokens + 1) / 2;
  const double attention = 1e6 * seconds(prefill, StepPhase::kAttention);
  const double per_prompt_position = std::min(per_position, attention / looks);
  add(points, tokens,
      1e6 * (prefill.total() - seconds(prefill, StepPhase::kHead)) - per_prompt_position * looks);
  return TimingModel(std::move(points), per_position)
      .WithPromptPositions(per_prompt_position)
      .WithHead(std::move(head));
}

ModelTimes OnMachine(const ModelTimes& here, const MachineRates& here_rates,
                     const MachineRates& there) {
  const Change change{there.stream / here_rates.stream, there.int8 / here_rates.int8, there.stream};
  ModelTimes out = here;
  for (CaseTime& each : out.decode) each = Changed(each, here, change);
  if (out.deep) out.deep = Changed(*here.deep, here, change);
  out.prefill = Changed(here.prefill, here, change);
  out.stream_here = there.stream;
  out.int8_here = there.int8;
  return out;
}

const char* BoundOf(const CaseTime& time, double stream) {
  double memory = 0;
  for (size_t i = 0; i < kNumPhases; ++i) {
    if (IsProduct(i) && IsMemoryBound(time.work.phases[i], time.seconds[i], stream)) {
      memory += time.seconds[i];
    }
  }
  return memory >= time.total() / 2 ? "memory" : "arithmetic";
}

}  // namespace hearth
