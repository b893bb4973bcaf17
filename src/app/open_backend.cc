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

// "loading 43 %" on a terminal, and nothing for models that load at once.
void ShowProgress(int64_t done, int64_t total) {
  constexpr int64_t kWorthShowing = int64_t{1} << 30;
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

Result<std::unique_ptr<Backend>> OpenCpuBackend(const Model& model, const CpuOptions& options) {
  const CpuMemoryPlan plan = PlanMemory(model, options);
  const auto need = static_cast<uint64_t>(plan.weight_bytes + plan.kv_bytes);
  const uint64_t room = ReadTopology().usable_memory_bytes();
  if (need > room) {
    constexpr double kGib = 1 << 30;
    return Error(Code::kExhausted,
                 "needs %.1f GiB (%.1f weights, %.1f KV in %d + %d blocks); this machine has %.1f",
                 static_cast<double>(need) / kGib, static_cast<double>(plan.weight_bytes) / kGib,
                 static_cast<double>(plan.kv_bytes) / kGib, options.full_blocks,
                 options.window_blocks, static_cast<double>(room) / kGib);
  }
  return MakeCpuBackend(model, options);
}

}  // namespace hearth
