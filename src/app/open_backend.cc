// SPDX-License-Identifier: Apache-2.0
#include "app/open_backend.h"

#include <unistd.h>

#include <cstdio>

#include "platform/topology.h"

namespace hearth {
namespace {

Result<Isa> ChosenIsa(const CpuFlags& flags) {
  if (flags.isa.empty()) return BestIsa();
  const std::optional<Isa> isa = IsaNamed(flags.isa);
  if (isa) return *isa;
  return Error(Code::kInvalid, "--isa %s: expected scalar, avx2, avx512 or amx",
               Quoted(flags.isa).c_str());
}

// Below this a model loads at once, and nobody needs to be told.
constexpr int64_t kWorthShowing = int64_t{1} << 30;

// "loading 43 %" on a terminal.
void ShowProgress(int64_t done, int64_t total) {
  if (total < kWorthShowing || isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\rloading %3d %%%s", static_cast<int>(100 * done / total),
               done == total ? "\r\x1b[K" : "");
}

}  // namespace

Status FillFrom(const CpuFlags& flags, CpuOptions& options) {
  HEARTH_ASSIGN(options.isa, ChosenIsa(flags));
  options.num_threads = flags.num_threads > 0 ? flags.num_threads : ReadTopology().useful_threads();
  options.on_progress = ShowProgress;
  return Status();
}

uint64_t UsableMemoryBytes() { return ReadTopology().usable_memory_bytes(); }

std::string Told(const CpuMemoryPlan& plan, uint64_t room) {
  const auto gib = [](auto bytes) { return static_cast<double>(bytes) / (1 << 30); };
  return Printf("%.2f GiB = %.2f weights + %.2f KV + %.2f activations; %.2f GiB usable",
                gib(plan.total()), gib(plan.weight_bytes), gib(plan.kv_bytes), gib(plan.step_bytes),
                gib(room));
}

Status CheckFits(const CpuMemoryPlan& plan, uint64_t room) {
  if (static_cast<uint64_t>(plan.total()) <= room) return Status();
  return Error(Code::kExhausted, "does not fit: needs %s", Told(plan, room).c_str());
}

Result<std::unique_ptr<Backend>> OpenCpuBackend(const Model& model, const CpuOptions& options) {
  const CpuMemoryPlan plan = PlanMemory(model, options);
  const uint64_t room = UsableMemoryBytes();
  HEARTH_TRY(CheckFits(plan, room));
  if (plan.total() >= kWorthShowing) {
    std::fprintf(stderr, "memory: at most %s\n", Told(plan, room).c_str());
  }
  const std::string slow = SlowFormatsNote(model);
  if (!slow.empty()) std::fprintf(stderr, "warning: %s\n", slow.c_str());
  return MakeCpuBackend(model, options);
}

}  // namespace hearth
