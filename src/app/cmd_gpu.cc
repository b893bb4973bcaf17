// SPDX-License-Identifier: Apache-2.0
// hearth gpu: which GPUs there are and which models would fit; `selftest` compares every kernel on
// one with the CPU's. `bench` and `tune` are in cmd_gpu_speed.cc.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/device_flag.h"
#include "app/open_model.h"
#include "app/print.h"
#include "base/json.h"
#include "base/terminal.h"
#include "cuda/fatbin.h"
#include "gpu/gpu_fit.h"
#include "gpu/selftest.h"
#include "platform/user_folders.h"
#include "store/inventory.h"

namespace hearth {
namespace {

constexpr const char* kUnverified = "verified by emulation, not yet on hardware";
constexpr const char* kWithoutKernels =
    "this program was built without CUDA kernels; use --device cpu, or build it after `./dev setup "
    "cuda`";

struct GpuFlags {
  std::string device = "cuda:0";
  bool json = false, quick = false, full = false;
};

// One model on one device.
struct ModelFit {
  std::string name;
  cuda::GpuFit fit;
  std::string problem;  // why it cannot run there, or empty
};
struct FoundDevice {
  cuda::DeviceFacts facts;
  uint64_t free_bytes = 0;
  std::string problem;
  std::vector<ModelFit> models;
};

ModelFit FitOfStored(const StoredModel& stored, const FoundDevice& device) {
  ModelFit found;
  found.name = stored.name;
  Result<Model> model = OpenModel(stored.path);
  if (!model.ok()) {
    found.problem = model.status().message();
    return found;
  }
  Result<cuda::GpuFit> fit =
      cuda::FitOf(*model, device.facts, cuda::UsableOf(device.free_bytes), BackendOptions());
  if (fit.ok()) {
    found.fit = *fit;
  } else {
    found.problem = fit.status().message();
  }
  return found;
}

Result<FoundDevice> Look(int index, const Inventory& inventory) {
  FoundDevice found;
  HEARTH_ASSIGN(found.facts, cuda::FactsOf(index));
  const auto opened = [&]() -> Status {
    HEARTH_ASSIGN(const std::unique_ptr<cuda::Device> device, cuda::Device::Open(index, {}));
    HEARTH_ASSIGN(found.free_bytes, device->FreeBytes());
    return Status();
  }();
  found.problem = opened.message();
  if (!opened.ok()) return found;
  for (const StoredModel& model : inventory.models) {
    if (model.is_complete) found.models.push_back(FitOfStored(model, found));
  }
  return found;
}

Json JsonOf(const ModelFit& model) {
  return JsonObject{{"name", model.name},
                    {"fits", model.problem.empty() && model.fit.context_tokens > 0},
                    {"weight_bytes", model.fit.weight_bytes},
                    {"step_bytes", model.fit.step_bytes},
                    {"context_tokens", model.fit.context_tokens},
                    {"problem", model.problem}};
}

Json JsonOf(const FoundDevice& device, size_t index) {
  JsonArray models;
  for (const ModelFit& model : device.models) models.push_back(JsonOf(model));
  return JsonObject{{"device", fmt::format("cuda:{}", index)},
                    {"name", device.facts.name},
                    {"capability", device.facts.level},
                    {"total_bytes", device.facts.total_bytes},
                    {"free_bytes", device.free_bytes},
                    {"processors", device.facts.num_processors},
                    {"nominal_bytes_per_second", device.facts.nominal_bandwidth},
                    {"problem", device.problem},
                    {"models", std::move(models)}};
}

void PrintModel(const ModelFit& model, size_t width) {
  if (!model.problem.empty()) {
    PrintOut("  {:<{}}  {}\n", model.name, width, model.problem);
    return;
  }
  const auto needed = static_cast<uint64_t>(model.fit.weight_bytes + model.fit.step_bytes);
  const std::string fits =
      model.fit.context_tokens > 0
          ? fmt::format("fits, with a context of {} tokens", model.fit.context_tokens)
          : std::string("does not fit");
  PrintOut("  {:<{}}  {}: {} before any context\n", model.name, width, fits, HumanBytes(needed));
}

void PrintDevice(const FoundDevice& device, size_t index) {
  const cuda::DeviceFacts& facts = device.facts;
  PrintOut("cuda:{}  {}, {}, {} processors, {} ({} free)", index, facts.name, facts.level,
           facts.num_processors, HumanBytes(facts.total_bytes), HumanBytes(device.free_bytes));
  if (facts.nominal_bandwidth > 0) {
    PrintOut(", {:.0f} GB/s by its data sheet", facts.nominal_bandwidth / 1e9);
  }
  PrintOut("\n");
  if (!device.problem.empty()) PrintOut("  cannot be used: {}\n", device.problem);
  if (device.problem.empty() && device.models.empty()) {
    PrintOut("  no models on this machine yet: `hearth pull` lists names to download\n");
  }
  size_t width = 0;
  for (const ModelFit& model : device.models) width = std::max(width, model.name.size());
  for (const ModelFit& model : device.models) PrintModel(model, width);
}

// What keeps this program from using a GPU, or empty.
std::string ProblemOf(const Status& found, const std::vector<FoundDevice>& devices) {
  if (!found.ok()) return found.message();
  if (devices.empty()) return "the NVIDIA driver has no device; use --device cpu";
  if (cuda::Fatbin().empty()) return kWithoutKernels;
  const bool any = std::any_of(devices.begin(), devices.end(),
                               [](const FoundDevice& device) { return device.problem.empty(); });
  return any ? "" : "no device can be used: " + devices.front().problem;
}

Status FindDevices(std::string& driver, std::vector<FoundDevice>& devices) {
  HEARTH_ASSIGN(driver, cuda::DriverVersion());
  HEARTH_ASSIGN(const int count, cuda::CountDevices());
  HEARTH_ASSIGN(const StorePlaces places, FindPlaces(ProcessEnvironment()));
  const Inventory inventory = TakeInventory(places);
  for (int i = 0; i < count; ++i) {
    HEARTH_ASSIGN(FoundDevice device, Look(i, inventory));
    devices.push_back(std::move(device));
  }
  return Status();
}

Status List(const GpuFlags& flags) {
  std::string driver;
  std::vector<FoundDevice> devices;
  const Status found = FindDevices(driver, devices);
  const std::string problem = ProblemOf(found, devices);
  if (flags.json) {
    JsonArray rows;
    for (size_t i = 0; i < devices.size(); ++i) rows.push_back(JsonOf(devices[i], i));
    PrintJson(JsonObject{{"schema", "hearth.gpu"},
                         {"version", 1},
                         {"kernels", !cuda::Fatbin().empty()},
                         {"state", kUnverified},
                         {"driver", driver},
                         {"usable", problem.empty()},
                         {"problem", problem},
                         {"devices", std::move(rows)}});
  } else {
    for (size_t i = 0; i < devices.size(); ++i) PrintDevice(devices[i], i);
    if (!driver.empty()) PrintOut("\nNVIDIA driver for CUDA {}. ", driver);
    PrintOut("Hearth on GPUs is {}: `hearth gpu selftest` compares a GPU with the CPU.\n",
             kUnverified);
  }
  if (problem.empty()) return Status();
  return Status(found.ok() ? Code::kUnsupported : found.code(), problem);
}

Status SelfTest(const GpuFlags& flags) {
  if (cuda::Fatbin().empty()) return Status(Code::kUnsupported, kWithoutKernels);
  HEARTH_ASSIGN(const int index, cuda::IndexOf(flags.device));
  HEARTH_ASSIGN(const cuda::DeviceFacts facts, cuda::FactsOf(index));
  HEARTH_ASSIGN(const std::string driver, cuda::DriverVersion());
  const cuda::CaseGrid grid = flags.full    ? cuda::CaseGrid::kFull
                              : flags.quick ? cuda::CaseGrid::kTiny
                                            : cuda::CaseGrid::kSmall;
  JsonArray rows;
  int64_t compared = 0;
  int num_wrong = 0;
  HEARTH_TRY(
      cuda::RunSelfTest(index, cuda::Fatbin(), grid, [&](const cuda::SelfTestResult& result) {
        compared += result.num_compared;
        num_wrong += result.wrong.empty() ? 0 : 1;
        rows.push_back(JsonObject{{"check", result.check},
                                  {"values", result.num_compared},
                                  {"equal", result.wrong.empty()},
                                  {"difference", result.wrong}});
        if (flags.json) return;
        PrintOut("{:<12} {:>10} values  {}\n", result.check, result.num_compared,
                 result.wrong.empty() ? "equal" : "DIFFER: " + result.wrong);
        std::fflush(stdout);
      }));
  if (flags.json) {
    PrintJson(JsonObject{{"schema", "hearth.gpu.selftest"},
                         {"version", 1},
                         {"hearth", HEARTH_VERSION},
                         {"device", facts.name},
                         {"capability", facts.level},
                         {"driver", driver},
                         {"values", compared},
                         {"equal", num_wrong == 0},
                         {"checks", std::move(rows)}});
  }
  if (num_wrong > 0) {
    return Error(Code::kCorrupt,
                 "%d check%s on %s (%s) differ from the CPU: its replies would, too; use "
                 "--device cpu and report this",
                 num_wrong, num_wrong == 1 ? "" : "s", flags.device.c_str(), facts.name.c_str());
  }
  if (!flags.json) {
    PrintOut(
        "\n{} values, every bit the CPU's: {}, {}, {}, driver for CUDA {}.\nHearth on GPUs "
        "is {}: please report this result (`hearth gpu selftest --json`).\n",
        compared, flags.device, facts.name, facts.level, driver, kUnverified);
  }
  return Status();
}

}  // namespace

void AddGpu(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<GpuFlags>();
  CLI::App* gpu = app.add_subcommand(
      "gpu",
      "Show the GPUs of this machine and which of its models fit on each. Exits with 1 when this "
      "program cannot use any");
  gpu->add_flag("--json", flags->json, "Print JSON");
  auto tested = std::make_shared<GpuFlags>();
  CLI::App* selftest = gpu->add_subcommand(
      "selftest",
      "Compare every kernel on a GPU with the CPU, bit for bit. Exits with 1 when something "
      "differs");
  selftest->add_option("--device", tested->device, "Which GPU: cuda:0, cuda:1 ...")
      ->check(Device())
      ->capture_default_str();
  CLI::Option* quick = selftest->add_flag("--quick", tested->quick, "The smallest shapes alone");
  selftest->add_flag("--full", tested->full, "Every shape: millions of values")->excludes(quick);
  selftest->add_flag("--json", tested->json, "Print JSON");
  selftest->callback([&chosen, tested] { chosen = [tested] { return SelfTest(*tested); }; });
  AddGpuBench(*gpu, chosen);
  gpu->callback([&chosen, flags, gpu] {
    if (gpu->get_subcommands().empty()) chosen = [flags] { return List(*flags); };
  });
}

}  // namespace hearth
