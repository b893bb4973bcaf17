// SPDX-License-Identifier: Apache-2.0
// How long steps of a model take, from a part of its layers that was run: arithmetic only.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bench/case.h"
#include "bench/work.h"
#include "plan/machine.h"
#include "sim/timing_model.h"
namespace hearth {

using PhaseSeconds = std::array<double, kNumPhases>;

// One case of the whole model.
struct CaseTime {
  BenchCase what;
  PhaseSeconds seconds{};  // of all its steps
  PhaseWork work;
  double total() const;
  double tokens_per_second() const { return static_cast<double>(TotalTokens(what)) / total(); }
};

// What `part` of the layers took becomes what all of them take. Products grow with the bytes of
// their weights, attention with its arithmetic, small operations with `layers`, how many times as
// many layers there are; the head is the same.
CaseTime Whole(const BenchCase& what, const PhaseSeconds& part, const PhaseWork& part_work,
               const PhaseWork& work, double layers);

// The least of the cases that everything below is told from: decode of one and more sequences
// without a context, one with, and a prompt.
struct ModelTimes {
  std::vector<CaseTime> decode;  // ascending in sequences, the first has one
  std::optional<CaseTime> deep;  // one sequence; absent when the context is too short for it
  CaseTime prefill;
  double stream_here = 0;  // the rates they hold for
  double int8_here = 0;

  // Tokens per second of `sequences` together, each after `depth` tokens. Between two cases the
  // time of a step is linear in the sequences, beyond the last its slope goes on.
  double DecodeRate(int sequences, int depth) const;
  double StepSeconds(int sequences, int depth) const;
  // Of a prompt of `tokens` from its start: `work` is what the prompt must compute.
  double PrefillSeconds(const PhaseWork& work, int tokens) const;
  // Of attention, for every position that a decoded token looks at.
  double SecondsPerPosition() const;
  // For the simulation of many users.
  TimingModel Timing() const;
};

// The same on a machine with other rates. A phase that is bound by memory follows the memory until
// arithmetic bounds it, and the other way round; small operations between the phases of a decode
// step take as long as here, since more cores do not shorten them.
ModelTimes OnMachine(const ModelTimes& here, const MachineRates& here_rates,
                     const MachineRates& there);

// What bounds most of a case's time: "memory" or "arithmetic".
const char* BoundOf(const CaseTime& time, double stream);

}  // namespace hearth
