// SPDX-License-Identifier: Apache-2.0
#include "app/plan_sample.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "app/bench_runner.h"
#include "cpu/roofline.h"
#include "model/costs.h"
#include "plan/sampled_layers.h"
#include "platform/isa.h"
#include "platform/usage.h"

namespace hearth {
namespace {

// The part must not fit in a cache that the whole does not fit in: reading it again would be too
// fast. Four times the last-level cache leaves little of it there.
constexpr double kLeastBytes = 512.0 * (1 << 20);
// On a busy machine rounds take long and more of them say no more.
constexpr double kLongEnough = 15;  // seconds
constexpr int kRounds = 3, kSteps = 8, kDepth = 4096;
constexpr int kBatches[] = {1, 8, 32};
// Two units, 64 products of two operations each. Processors with one unit look half as fast.
constexpr double kVnniOpsPerCycle = 256;
constexpr double kNominalOps = 2e11;  // per thread, where nothing is measured

double LeastBytes() {
  return std::max(kLeastBytes, 4.0 * static_cast<double>(::sysconf(_SC_LEVEL3_CACHE_SIZE)));
}

// Layers that alternate do so with this period: gpt-oss's windows.
int PeriodOf(const ModelSpec& spec) {
  for (const LayerSpec& layer : spec.layers) {
    if (layer.window != spec.layers.front().window) return 2;
  }
  return 1;
}

Model PartOf(const Model& model) {
  Model part = model;
  if (model.file->packed() != nullptr) return part;  // mapped whole, and there at once
  std::vector<double> bytes(model.layers.size());
  VisitWeights(model, [&](const MatView& weight, const WeightPlace& place) {
    if (place.layer >= 0) {
      bytes[static_cast<size_t>(place.layer)] += static_cast<double>(BytesOf(weight));
    }
  });
  part.layers.clear();
  part.spec.layers.clear();
  for (const int layer : SampledLayers(bytes, PeriodOf(model.spec), LeastBytes())) {
    part.layers.push_back(model.layers[static_cast<size_t>(layer)]);
    part.spec.layers.push_back(model.spec.layers[static_cast<size_t>(layer)]);
  }
  return part;
}

std::vector<BenchCase> CasesFor(const ModelSpec& spec, int chunk) {
  std::vector<BenchCase> cases;
  for (const int batch : kBatches) cases.push_back({BenchKind::kDecode, batch, 0, kSteps});
  cases.push_back({BenchKind::kPrefill, 1, 0, std::min(chunk, spec.max_context)});
  const int depth = std::min(kDepth, spec.max_context - kSteps);
  if (depth >= 256) cases.push_back({BenchKind::kDecode, 1, depth, kSteps});
  return cases;
}

// Best of what was seen, as everywhere: disturbance only ever slows.
void MeasureRates(Rooflines& rooflines, Isa isa, PlanSample& sample) {
  sample.rates.stream = std::max(sample.rates.stream, rooflines.StreamReadBytesPerSecond());
  const std::optional<double> vnni = rooflines.VnniOpsPerSecond();
  if (vnni) {
    sample.clock_hz = std::max(sample.clock_hz, *vnni / sample.rates.threads / kVnniOpsPerCycle);
  }
  const std::optional<double> peak = isa == Isa::kAmx          ? rooflines.AmxOpsPerSecond()
                                     : isa >= Isa::kAvx512Vnni ? vnni
                                                               : std::nullopt;
  sample.has_int8 = peak.has_value();
  sample.rates.int8 =
      std::max(sample.rates.int8, peak.value_or(kNominalOps * sample.rates.threads));
}

PhaseSeconds SecondsOf(const PhaseTotals& totals) {
  PhaseSeconds seconds{};
  for (size_t i = 0; i < kNumPhases; ++i) seconds[i] = totals.phases[i].seconds;
  return seconds;
}

double Sum(const PhaseSeconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void Keep(const CaseTime& time, ModelTimes& times) {
  if (time.what.kind == BenchKind::kPrefill) {
    times.prefill = time;
  } else if (time.what.depth > 0) {
    times.deep = time;
  } else {
    times.decode.push_back(time);
  }
}

Result<PlanSample> MakeSample(const BackendOptions& options) {
  PlanSample sample;
  sample.rates.threads = options.num_threads;
  return sample;
}

Isa IsaOf(const BackendOptions& options) { return IsaNamed(options.isa).value_or(Isa::kScalar); }

}  // namespace

Result<PlanSample> SampleMachine(const BackendOptions& options) {
  HEARTH_ASSIGN(PlanSample sample, MakeSample(options));
  HEARTH_ASSIGN(Rooflines rooflines, Rooflines::Make(options.num_threads));
  for (int round = 0; round < kRounds; ++round) MeasureRates(rooflines, IsaOf(options), sample);
  return sample;
}

Result<PlanSample> SampleModel(const Model& model, const BackendOptions& options,
                               const WorkModel& work, const KvLayout& kv, int chunk) {
  const auto start = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(PlanSample sample, MakeSample(options));
  const Model part = PartOf(model);
  const WorkModel part_work(part);
  const std::vector<BenchCase> cases = CasesFor(model.spec, chunk);
  PhaseTotals totals;
  BackendOptions measured = options;
  measured.phases = &totals;
  HEARTH_ASSIGN(BenchRunner runner, BenchRunner::Make(part, measured, cases, chunk));
  const KvLayout part_kv = runner.backend().kv_layout();
  HEARTH_ASSIGN(Rooflines rooflines, Rooflines::Make(options.num_threads));
  std::vector<PhaseSeconds> best(cases.size());
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const CpuTime before = ReadCpuTime();
  for (int round = -1; round < kRounds; ++round) {  // the first to warm up
    if (round > 0 && elapsed() > kLongEnough) break;
    if (round >= 0) MeasureRates(rooflines, IsaOf(options), sample);
    for (size_t i = 0; i < cases.size(); ++i) {
      if (round < 0) HEARTH_TRY(runner.Fill(static_cast<int>(i)).status());
      totals = {};
      HEARTH_TRY(runner.Run(static_cast<int>(i), round < 0 ? 1 : 1 << 30).status());
      const PhaseSeconds seconds = SecondsOf(totals);
      if (round == 0 || (round > 0 && Sum(seconds) < Sum(best[i]))) best[i] = seconds;
    }
  }
  const double layers =
      static_cast<double>(model.layers.size()) / static_cast<double>(part.layers.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    Keep(Whole(cases[i], best[i], part_work.ByPhase(cases[i], part_kv, chunk),
               work.ByPhase(cases[i], kv, chunk), layers),
         sample.times);
  }
  sample.loop = {sample.rates.threads, rooflines.LookSeconds()};
  sample.times.stream_here = sample.rates.stream;
  sample.times.int8_here = sample.rates.int8;
  sample.layers = static_cast<int>(part.layers.size());
  sample.others = OthersShare(before, ReadCpuTime());
  sample.seconds = elapsed();
  return sample;
}

}  // namespace hearth
