// SPDX-License-Identifier: Apache-2.0
// hearth gpu bench: how fast a GPU copies and runs each kernel, beside what its data sheet
// promises. hearth gpu tune: which kernels are the faster ones there, kept for later starts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/device_flag.h"
#include "app/print.h"
#include "base/json.h"
#include "base/terminal.h"
#include "cuda/fatbin.h"
#include "gpu/gpu_speed.h"
#include "gpu/tuning.h"

namespace hearth {
namespace {

constexpr const char* kUnverified = "verified by emulation, not yet on hardware";

struct GpuBenchFlags {
  std::string device = "cuda:0";
  bool json = false, quick = false;
  cuda::BenchSizes sizes() const { return quick ? cuda::kQuickSizes : cuda::BenchSizes(); }
};

// A device with everything that its results are filed under.
struct OpenedGpu {
  std::unique_ptr<cuda::Device> device;
  std::string driver, key;
};
Result<OpenedGpu> OpenGpu(const GpuBenchFlags& flags) {
  if (cuda::Fatbin().empty()) {
    return Error(Code::kUnsupported,
                 "this program was built without CUDA kernels; build it after `./dev setup cuda`");
  }
  OpenedGpu gpu;
  HEARTH_ASSIGN(const int index, cuda::IndexOf(flags.device));
  HEARTH_ASSIGN(gpu.driver, cuda::DriverVersion());
  HEARTH_ASSIGN(gpu.device, cuda::Device::Open(index, cuda::Fatbin()));
  gpu.key = cuda::TuningKey(gpu.device->facts(), gpu.driver, cuda::Fatbin());
  return gpu;
}

double PerSecond(int64_t amount, double seconds) {
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

// Of the memory's bandwidth by the data sheet; copies from and to the host go by another way.
double ShareOf(const cuda::BenchRow& row, const cuda::DeviceFacts& facts) {
  if (facts.nominal_bandwidth <= 0) return 0;
  return PerSecond(row.bytes, row.seconds) / facts.nominal_bandwidth;
}

void PrintRow(const cuda::BenchRow& row, const cuda::DeviceFacts& facts) {
  PrintOut("{:<20} {:>4} {:>10.3f} ms {:>9.1f} GB/s {:>5.1f} % of memory", row.what,
           row.rows > 0 ? fmt::format("{}", row.rows) : "", row.seconds * 1e3,
           PerSecond(row.bytes, row.seconds) / 1e9, 100 * ShareOf(row, facts));
  if (row.products > 0) PrintOut(" {:>8.2f} TOPS", PerSecond(row.products, row.seconds) / 1e12);
  PrintOut("\n");
  std::fflush(stdout);
}

Json JsonOf(const cuda::BenchRow& row, const cuda::DeviceFacts& facts) {
  return JsonObject{{"what", row.what},
                    {"rows", row.rows},
                    {"seconds", row.seconds},
                    {"bytes", row.bytes},
                    {"bytes_per_second", PerSecond(row.bytes, row.seconds)},
                    {"share_of_memory", ShareOf(row, facts)},
                    {"operations", row.products},
                    {"operations_per_second", PerSecond(row.products, row.seconds)}};
}

JsonObject Header(const char* schema, const OpenedGpu& gpu) {
  const cuda::DeviceFacts& facts = gpu.device->facts();
  return JsonObject{
      {"schema", schema},         {"version", 1},
      {"hearth", HEARTH_VERSION}, {"state", kUnverified},
      {"device", facts.name},     {"capability", facts.level},
      {"driver", gpu.driver},     {"nominal_bytes_per_second", facts.nominal_bandwidth}};
}

Status Bench(const GpuBenchFlags& flags) {
  HEARTH_ASSIGN(const OpenedGpu gpu, OpenGpu(flags));
  const cuda::DeviceFacts& facts = gpu.device->facts();
  JsonArray rows;
  HEARTH_TRY(cuda::RunGpuBench(*gpu.device, flags.sizes(), [&](const cuda::BenchRow& row) {
    rows.push_back(JsonOf(row, facts));
    if (!flags.json) PrintRow(row, facts);
  }));
  if (flags.json) {
    JsonObject report = Header("hearth.gpu.bench", gpu);
    report.emplace_back("rows", std::move(rows));
    PrintJson(report);
    return Status();
  }
  PrintOut(
      "\n{}, {}, driver for CUDA {}; memory {:.0f} GB/s by its data sheet. Hearth on GPUs is {}: "
      "please report this result (`hearth gpu bench --json`).\n",
      facts.name, facts.level, gpu.driver, facts.nominal_bandwidth / 1e9, kUnverified);
  return Status();
}

Status Tune(const GpuBenchFlags& flags) {
  HEARTH_ASSIGN(const OpenedGpu gpu, OpenGpu(flags));
  const std::string path = cuda::TuningPath(ProcessEnvironment());
  if (path.empty()) {
    return Error(Code::kNotFound,
                 "no folder for the result: neither XDG_CACHE_HOME nor HOME is set");
  }
  JsonArray rows;
  HEARTH_ASSIGN(const cuda::Tuning tuning,
                cuda::TuneGpu(*gpu.device, flags.sizes(), [&](const cuda::TuneRow& row) {
                  rows.push_back(JsonObject{{"format", cuda::NameOf(row.kind)},
                                            {"rows", row.rows},
                                            {"tiles_of_8_seconds", row.few_seconds},
                                            {"tiles_of_32_seconds", row.many_seconds}});
                  if (flags.json) return;
                  PrintOut("{:<8} {:>4} rows  tiles of 8 {:>9.3f} ms  of 32 {:>9.3f} ms\n",
                           cuda::NameOf(row.kind), row.rows, row.few_seconds * 1e3,
                           row.many_seconds * 1e3);
                  std::fflush(stdout);
                }));
  HEARTH_TRY(cuda::WriteTuning(path, gpu.key, tuning));
  if (flags.json) {
    JsonObject report = Header("hearth.gpu.tune", gpu);
    report.emplace_back("file", path);
    report.emplace_back("rows", std::move(rows));
    PrintJson(report);
    return Status();
  }
  PrintOut("\nTiles of 8 up to so many rows, written to {} for {}:\n", path, gpu.key);
  for (size_t i = 0; i < cuda::kNumKinds; ++i) {
    const auto kind = static_cast<cuda::WeightKind>(i);
    if (cuda::HasTwoKernels(kind))
      PrintOut("  {:<8} {}\n", cuda::NameOf(kind), tuning.few_up_to[i]);
  }
  PrintOut("Replies have the same bits with any of them. Hearth on GPUs is {}.\n", kUnverified);
  return Status();
}

void AddFlags(CLI::App& command, GpuBenchFlags& flags) {
  command.add_option("--device", flags.device, "Which GPU: cuda:0, cuda:1 ...")
      ->check(Device())
      ->capture_default_str();
  command.add_flag("--quick", flags.quick, "Tiny sizes, once: whether it runs, not how fast");
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace

void AddGpuBench(CLI::App& gpu, Command& chosen) {
  auto bench = std::make_shared<GpuBenchFlags>();
  CLI::App* measure = gpu.add_subcommand(
      "bench", "Measure how fast a GPU copies and runs each kernel, beside its data sheet");
  AddFlags(*measure, *bench);
  measure->callback([&chosen, bench] { chosen = [bench] { return Bench(*bench); }; });
  auto tune = std::make_shared<GpuBenchFlags>();
  CLI::App* choose = gpu.add_subcommand(
      "tune", "Measure which kernels are faster on a GPU, and keep that for later starts");
  AddFlags(*choose, *tune);
  choose->callback([&chosen, tune] { chosen = [tune] { return Tune(*tune); }; });
}

}  // namespace hearth
