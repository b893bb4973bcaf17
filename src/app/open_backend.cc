// SPDX-License-Identifier: Apache-2.0
#include "app/open_backend.h"

#include <unistd.h>

#include <cstdio>

#include "app/backends.h"
#include "backend/numerics.h"
#include "base/terminal.h"
#include "platform/missing.h"
#include "platform/topology.h"

namespace hearth {
namespace {

// Below this a model loads at once, and nobody needs to be told.
constexpr int64_t kWorthShowing = int64_t{1} << 30;

// "loading 43 %" on a terminal.
void ShowProgress(int64_t done, int64_t total) {
  if (total < kWorthShowing || isatty(STDERR_FILENO) == 0) return;
  PrintCodes(stderr, Printf("\rloading %3d %%%s", static_cast<int>(100 * done / total),
                            done == total ? "\r\x1b[K" : ""));
}

std::string MemoryOf(const BackendPlan& plan) {
  if (IsHost(plan.options.device)) return "memory";
  return "the memory of " + plan.options.device;
}

}  // namespace

std::string NumericsNameOf(const BackendFlags& flags) {
  const std::string name(NumericsName(flags.numerics, flags.kv_code));
  return flags.weights.empty() ? name : name + "-" + flags.weights;
}

Result<BackendOptions> OptionsFrom(const BackendFlags& flags) {
  BackendOptions options;
  options.device = IsHost(flags.device) ? "cpu" : flags.device;
  options.isa = flags.isa;
  options.num_threads = flags.num_threads;
  options.kv_code = flags.kv_code;
  options.numerics = flags.numerics;
  options.numa_nodes = flags.numa_nodes;
  options.beside_bytes = flags.beside_bytes;
  options.on_progress = ShowProgress;
  options.paging = flags.paging.meter;
  return BackendOn(options.device).Complete(options);
}

Result<BackendPlan> PlanBackend(const Model& model, const BackendOptions& options) {
  return BackendOn(options.device).Plan(model, options);
}

uint64_t UsableMemoryBytes() { return ReadTopology().usable_memory_bytes(); }

Result<uint64_t> UsableBytesOn(const BackendOptions& options) {
  return BackendOn(options.device).UsableBytes(options);
}

std::string Told(const BackendPlan& plan, uint64_t room) {
  const int64_t beside = IsHost(plan.options.device) ? plan.options.beside_bytes : 0;
  return Printf(
      "%.2f GiB = %.2f weights + %.2f KV + %.2f activations + %.2f logits; %.2f GiB "
      "usable%s",
      InGib(plan.total_bytes()), InGib(plan.weight_bytes), InGib(plan.kv.total_bytes()),
      InGib(plan.step_bytes), InGib(plan.result_bytes), InGib(static_cast<int64_t>(room)),
      beside > 0 ? Printf(" beside %.2f for the server itself", InGib(beside)).c_str() : "");
}

Status CheckFits(const BackendPlan& plan, uint64_t room) {
  if (static_cast<uint64_t>(plan.total_bytes()) <= room) return Status();
  return Error(
      Code::kExhausted,
      "the model does not fit in %s: needs %s; use a smaller model or context, or free memory",
      MemoryOf(plan).c_str(), Told(plan, room).c_str());
}

Result<std::unique_ptr<Backend>> OpenBackend(const Model& model, const BackendPlan& plan) {
  HEARTH_ASSIGN(const uint64_t room, UsableBytesOn(plan.options));
  HEARTH_TRY(CheckFits(plan, room));
  if (!IsHost(plan.options.device)) {
    PrintError("%s: %s\n", plan.options.device.c_str(), Told(plan, room).c_str());
  } else if (plan.total_bytes() >= kWorthShowing) {
    PrintError(
        "memory: %.2f GiB now, up to %.2f GiB more for the KV cache as it fills; %.2f GiB "
        "are usable\n",
        InGib(plan.total_bytes() - plan.kv.total_bytes()), InGib(plan.kv.total_bytes()),
        InGib(static_cast<int64_t>(room)));
  }
  if (!plan.warning.empty()) PrintError("warning: %s\n", plan.warning.c_str());
  auto backend = BackendOn(plan.options.device).Open(model, plan);
  for (const std::string& sentence : TakeMissing()) {
    PrintError("warning: %s\n", sentence.c_str());
  }
  return backend;
}

}  // namespace hearth
