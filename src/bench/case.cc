// SPDX-License-Identifier: Apache-2.0
#include "bench/case.h"

#include <algorithm>

#include "base/check.h"
#include "base/result.h"

namespace hearth {
namespace {

std::vector<double> Sorted(const Samples& samples) {
  HEARTH_CHECK(!samples.all.empty());
  std::vector<double> values;
  for (const BenchSample& sample : samples.all) values.push_back(sample.value);
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

std::string NameOf(const BenchCase& what) {
  if (what.kind == BenchKind::kPrefill) return Printf("prefill %d", what.tokens);
  if (what.depth == 0) return Printf("decode %d", what.sequences);
  return Printf("decode %d at %d", what.sequences, what.depth);
}

int64_t TotalTokens(const BenchCase& what) { return int64_t{what.sequences} * what.tokens; }

double Samples::best() const {
  const std::vector<double> values = Sorted(*this);
  return less_is_better ? values.front() : values.back();
}

double Samples::worst() const {
  const std::vector<double> values = Sorted(*this);
  return less_is_better ? values.back() : values.front();
}

double Samples::median() const {
  const std::vector<double> values = Sorted(*this);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Samples::spread() const {
  // Of rates in both cases: twice the seconds is half the speed, 50 % off.
  return less_is_better ? 1 - best() / worst() : 1 - worst() / best();
}

PhaseFigure Profile::total() const {
  PhaseFigure total;
  total.name = "step";
  for (const PhaseFigure& phase : phases) {
    total.seconds += phase.seconds;
    total.waiting += phase.waiting;
    total.alone += phase.alone;
    total.work.bytes += phase.work.bytes;
    total.work.flops += phase.work.flops;
  }
  return total;
}

double BenchRecord::roofline(RooflineIndex which) const {
  const Roofline& found = rooflines[which];
  return found.absent ? 0 : found.rates.best();
}

}  // namespace hearth
