// SPDX-License-Identifier: Apache-2.0
// hearth bench: how fast a model runs here, beside what this machine could do at best.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "app/bench_runner.h"
#include "app/commands.h"
#include "app/compute_flags.h"
#include "app/device_flag.h"
#include "app/flag_checks.h"
#include "app/kv_flag.h"
#include "app/model_argument.h"
#include "app/numa_flag.h"
#include "app/numerics_flag.h"
#include "app/open_model.h"
#include "app/print.h"
#include "app/today.h"
#include "bench/output.h"
#include "bench/phases.h"
#include "bench/work.h"
#include "cpu/roofline.h"
#include "platform/file.h"
#include "platform/topology.h"
#include "platform/usage.h"

namespace hearth {
namespace {

struct Flags {
  std::string model, json, html;
  int decode = 16, repeat = 3, chunk = 512;
  std::vector<int> batches = {1, 8, 32}, depths, depth_batches = {1}, prefills = {512};
  bool only_rooflines = false, phases = false;
  BackendFlags hardware;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<BenchCase> CasesOf(const Flags& flags) {
  std::vector<BenchCase> cases;
  if (flags.decode > 0) {
    for (const int batch : flags.batches) {
      cases.push_back({BenchKind::kDecode, batch, 0, flags.decode});
    }
    for (const int depth : flags.depths) {
      for (const int batch : flags.depth_batches) {
        cases.push_back({BenchKind::kDecode, batch, depth, flags.decode});
      }
    }
  }
  for (const int tokens : flags.prefills) {
    if (tokens > 0) cases.push_back({BenchKind::kPrefill, 1, 0, tokens});
  }
  return cases;
}

void Note(const std::string& text) {
  if (isatty(STDERR_FILENO) != 0) PrintCodes(stderr, "\r\x1b[K" + ForTerminal(text));
}

// What --phases needs beside the record.
struct Profiling {
  PhaseTotals totals;  // of the run under way
  std::optional<WorkModel> work;
  KvLayout kv;
};

// Loads the model, runs every case once and briefly, and fills the contexts. Nothing is measured
// yet but the start and the memory.
Result<BenchRunner> Start(const Flags& flags, const BackendOptions& options,
                          const std::vector<BenchCase>& cases, BenchedModel& found,
                          Profiling& profiling) {
  const auto start = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const std::string path, ModelPath(flags.model));
  HEARTH_ASSIGN(const Model model, OpenModel(path));
  found.name = model.spec.name.empty() ? flags.model : model.spec.name;
  found.family = model.spec.family;
  found.costs = CostsOf(model);
  const WorkModel& work = profiling.work.emplace(model);
  HEARTH_ASSIGN(BenchRunner runner, BenchRunner::Make(model, options, cases, flags.chunk));
  found.load_seconds = SecondsSince(start);
  const KvLayout kv = profiling.kv = runner.backend().kv_layout();
  found.kv_bytes = kv.total_bytes();
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto index = static_cast<int>(i);
    Note("warming up: " + NameOf(cases[i]));
    Measurement measurement;
    measurement.what = cases[i];
    measurement.work = work.Of(cases[i], kv, flags.chunk);
    HEARTH_ASSIGN(measurement.copied_context, runner.Fill(index));
    HEARTH_TRY(runner.Run(index, 1).status());
    if (i == 0) found.first_token_seconds = SecondsSince(start);
    found.measurements.push_back(std::move(measurement));
  }
  found.peak_resident = ReadResident().peak;
  return runner;
}

void Measure(Rooflines& rooflines, std::vector<Roofline>& found) {
  const auto add = [&](RooflineIndex which, auto&& measure) {
    const CpuTime before = ReadCpuTime();
    const std::optional<double> rate = measure();
    found[which].absent = !rate.has_value();
    if (rate) found[which].rates.all.push_back({*rate, OthersShare(before, ReadCpuTime())});
  };
  add(kPlainRead, [&] { return std::optional(rooflines.PlainReadBytesPerSecond()); });
  add(kStreamRead, [&] { return std::optional(rooflines.StreamReadBytesPerSecond()); });
  add(kVnniPeak, [&] { return rooflines.VnniOpsPerSecond(); });
  add(kAmxPeak, [&] { return rooflines.AmxOpsPerSecond(); });
}

// One timed run of a case. The profile kept is that of the best run, like the time that counts.
Status MeasureCase(const Flags& flags, BenchRunner& runner, int index, Profiling& profiling,
                   Measurement& measurement) {
  const CpuTime before = ReadCpuTime();
  profiling.totals = {};
  HEARTH_ASSIGN(const double seconds, runner.Run(index));
  measurement.seconds.all.push_back({seconds, OthersShare(before, ReadCpuTime())});
  if (!flags.phases || seconds > measurement.seconds.best()) return Status();
  const PhaseWork work = profiling.work->ByPhase(measurement.what, profiling.kv, flags.chunk);
  measurement.profile = ProfileOf(profiling.totals, work, *profiling.work);
  return Status();
}

// Round after round over everything, so that a slow minute of the machine hits all alike.
Status Measure(const Flags& flags, int num_threads, BenchRunner* runner, Profiling& profiling,
               BenchRecord& record) {
  record.rooflines = {{.name = "plain read", .unit = "B/s"},
                      {.name = "stream read", .unit = "B/s"},
                      {.name = "AVX-512 VNNI int8", .unit = "OP/s"},
                      {.name = "AMX int8", .unit = "OP/s"}};
  HEARTH_ASSIGN(Rooflines rooflines, Rooflines::Make(num_threads));
  const CpuTime start = ReadCpuTime();
  for (int round = 0; round < flags.repeat; ++round) {
    Measure(rooflines, record.rooflines);
    if (runner == nullptr) continue;
    for (size_t i = 0; i < record.model->measurements.size(); ++i) {
      Measurement& measurement = record.model->measurements[i];
      Note(fmt::format("round {} of {}: {}", round + 1, flags.repeat, NameOf(measurement.what)));
      HEARTH_TRY(MeasureCase(flags, *runner, static_cast<int>(i), profiling, measurement));
    }
  }
  Measure(rooflines, record.rooflines);
  record.others = OthersShare(start, ReadCpuTime());
  Note("");
  return Status();
}

Status WriteText(const std::string& path, const std::string& text) {
  return WriteFileAtomically(path, std::as_bytes(std::span(text)));
}

Status Bench(const Flags& flags) {
  HEARTH_ASSIGN(BackendOptions options, OptionsFrom(flags.hardware));
  const Topology topology = ReadTopology();
  BenchRecord record;
  record.date = TodayUtc();
  record.version = HEARTH_VERSION;
  record.processor = ProcessorName();
  record.isa = options.isa;
  record.numerics = NumericsNameOf(flags.hardware);
  record.num_threads = options.num_threads;
  record.num_cpus = topology.num_cpus;
  record.num_cores = topology.num_cores;
  record.num_numa_nodes = topology.num_numa_nodes;
  record.memory_bytes = topology.usable_memory_bytes();
  record.rounds = flags.repeat;
  record.chunk = flags.chunk;
  Profiling profiling;  // outlives the runner, whose backend writes to it
  if (flags.phases) options.phases = &profiling.totals;
  std::optional<BenchRunner> runner;
  if (!flags.only_rooflines) {
    const std::vector<BenchCase> cases = CasesOf(flags);
    if (cases.empty())
      return Error(Code::kInvalid,
                   "nothing to measure: --decode 0 and --prefill 0 turn off all cases");
    record.model.emplace();
    HEARTH_ASSIGN(BenchRunner made, Start(flags, options, cases, *record.model, profiling));
    runner.emplace(std::move(made));
  }
  HEARTH_TRY(Measure(flags, options.num_threads, runner ? &*runner : nullptr, profiling, record));
  PrintOut("{}", BenchTable(record));
  if (!flags.json.empty()) {
    HEARTH_TRY(WriteText(flags.json, WriteJson(BenchJson(record), 2) + "\n"));
  }
  if (!flags.html.empty()) HEARTH_TRY(WriteText(flags.html, BenchPage(record)));
  return Status();
}

// What to measure; CLI11 needs the flags to stay where they are.
void AddCases(CLI::App& bench, Flags& flags) {
  bench.add_option("--decode", flags.decode, "Steps per decode case; 0: no decode cases")
      ->check(Between(0, 1 << 20))
      ->capture_default_str();
  bench.add_option("--batch", flags.batches, "Batch sizes of the decode cases, comma-separated")
      ->delimiter(',')
      ->check(Between(1, 4096))
      ->capture_default_str();
  bench
      .add_option("--depth", flags.depths,
                  "Context lengths of further decode cases, in tokens, comma-separated")
      ->delimiter(',')
      ->check(Between(1, 1 << 24));
  bench
      .add_option("--depth-batch", flags.depth_batches,
                  "Batch sizes of the --depth cases, comma-separated")
      ->delimiter(',')
      ->check(Between(1, 4096))
      ->capture_default_str();
  bench
      .add_option(
          "--prefill", flags.prefills,
          "Prompt lengths of the prefill cases, in tokens, comma-separated; 0: no prefill cases")
      ->delimiter(',')
      ->check(Between(0, 1 << 20))
      ->capture_default_str();
  bench.add_option("--chunk", flags.chunk, "Tokens per prefill step")
      ->check(Between(16, 1 << 16))
      ->capture_default_str();
  bench
      .add_option("--repeat", flags.repeat,
                  "Number of rounds over all cases; the best one is reported")
      ->check(Between(1, 1000))
      ->capture_default_str();
}

}  // namespace

void AddBench(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* bench = app.add_subcommand(
      "bench", "Measure how fast a model runs, compared with the limits of this machine");
  CLI::Option* model = bench->add_option(
      "--model", flags->model, "Model file or directory, or a name that `hearth list` shows");
  model->required();
  AddCases(*bench, *flags);
  CLI::Option* phases =
      bench->add_flag("--phases", flags->phases, "Also show the time of each phase of a step");
  CLI::Option* roofline = bench->add_flag_callback(
      "--roofline,--yardstick",
      [flags, model] {
        flags->only_rooflines = true;
        model->required(false);
      },
      "Measure only the machine, without a model");
  phases->excludes(roofline);
  bench->add_option("--json", flags->json, "JSON file for all samples");
  bench->add_option("--html", flags->html, "HTML file for a report with charts");
  AddDevice(*bench, flags->hardware.device);
  AddIsa(*bench, flags->hardware);
  AddThreads(*bench, flags->hardware);
  AddKvType(*bench, flags->hardware.kv_code);
  AddNumerics(*bench, flags->hardware.numerics);
  AddNuma(*bench, flags->hardware.numa_nodes);
  AddBenchLoad(*bench, chosen);
  // Subcommands of bench are added above this line. They need none of these flags.
  for (CLI::App* sub : bench->get_subcommands({})) {
    sub->preparse_callback([model](size_t) { model->required(false); });
  }
  bench->callback([&chosen, flags, bench] {
    if (bench->get_subcommands().empty()) chosen = [flags] { return Bench(*flags); };
  });
}

}  // namespace hearth
