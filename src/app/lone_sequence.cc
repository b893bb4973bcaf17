// SPDX-License-Identifier: Apache-2.0
#include "app/lone_sequence.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cpu/cpu_backend.h"
#include "platform/isa.h"
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

Result<LoneSequence> LoneSequence::Make(const Model& model, const CpuFlags& flags, int max_tokens) {
  CpuOptions options;
  HEARTH_ASSIGN(options.isa, ChosenIsa(flags));
  const Topology topology = ReadTopology();
  options.num_threads = flags.num_threads > 0 ? flags.num_threads : topology.useful_threads();
  const int num_blocks = (max_tokens + kBlockTokens - 1) / kBlockTokens;
  options.full_blocks = options.window_blocks = num_blocks;
  options.on_progress = ShowProgress;
  const CpuMemoryPlan plan = PlanMemory(model, options);
  const auto need = static_cast<uint64_t>(plan.weight_bytes + plan.kv_bytes);
  if (need > topology.usable_memory_bytes()) {
    return Error(Code::kExhausted,
                 "needs %.1f GiB (%.1f weights, %.1f KV for %d tokens); this machine has %.1f",
                 static_cast<double>(need) / (1 << 30),
                 static_cast<double>(plan.weight_bytes) / (1 << 30),
                 static_cast<double>(plan.kv_bytes) / (1 << 30), max_tokens,
                 static_cast<double>(topology.usable_memory_bytes()) / (1 << 30));
  }
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, MakeCpuBackend(model, options));
  std::vector<BlockId> table;
  for (int i = 0; i < num_blocks; ++i) table.push_back(static_cast<BlockId>(i));
  return LoneSequence(std::move(backend), std::move(table));
}

Status LoneSequence::Append(std::span<const Token> tokens, int chunk, bool every_row,
                            const Emit& emit) {
  const auto vocab = static_cast<size_t>(backend_->vocab_size());
  while (!tokens.empty()) {
    const auto count = std::min(tokens.size(), static_cast<size_t>(chunk));
    StepPlan plan;
    plan.tokens.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    SeqSlice slice;
    slice.count = static_cast<int>(count);
    slice.num_computed = num_computed_;
    slice.full = slice.window = table_;
    const bool last = count == tokens.size();
    slice.num_logits = every_row ? slice.count : last ? 1 : 0;
    plan.num_logits_rows = slice.num_logits;
    plan.slices.push_back(slice);
    logits_.resize(static_cast<size_t>(slice.num_logits) * vocab);
    HEARTH_TRY(backend_->Run(plan, logits_));
    num_computed_ += slice.count;
    for (int i = 0; i < slice.num_logits; ++i) {
      emit(std::span(logits_).subspan(static_cast<size_t>(i) * vocab, vocab));
    }
    tokens = tokens.subspan(count);
  }
  return Status();
}

}  // namespace hearth
