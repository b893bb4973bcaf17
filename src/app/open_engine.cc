// SPDX-License-Identifier: Apache-2.0
#include "app/open_engine.h"

#include <algorithm>
#include <random>

#include "engine/kv_budget.h"
#include "platform/topology.h"

namespace hearth {
namespace {

// The first budget a machine should try: what is left over is for the page cache and neighbours.
constexpr double kDefaultShare = 0.5;

// Keys of cached blocks never leave the process, so their secret need not outlive it.
uint64_t SecretSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

ExpertCounts ExpertsOf(const ModelSpec& spec) { return {spec.n_experts, spec.n_active_experts}; }

Result<EnginePlan> PlanEngine(const Model& model, const EngineFlags& flags, uint64_t usable_bytes) {
  EnginePlan plan;
  HEARTH_TRY(FillFrom(flags.cpu, plan.cpu));
  plan.cpu.max_step_tokens = flags.max_step_tokens;
  KvBudget budget;
  budget.layout = CpuKvLayout(model.spec);
  budget.max_sequences = flags.max_sequences;
  budget.max_step_tokens = flags.max_step_tokens;
  budget.max_context = flags.max_context > 0 ? std::min(flags.max_context, model.spec.max_context)
                                             : model.spec.max_context;
  const CpuMemoryPlan fixed = PlanMemory(model, plan.cpu);  // no blocks yet
  const int64_t logits_bytes = int64_t{flags.max_sequences} * model.spec.vocab_size * 4;
  const int64_t left = static_cast<int64_t>(usable_bytes) - fixed.total() - logits_bytes;
  if (left <= 0) {
    return Error(Code::kExhausted, "nothing is left for KV: needs %s, and %.2f GiB for logits",
                 Told(fixed, usable_bytes).c_str(), static_cast<double>(logits_bytes) / (1 << 30));
  }
  budget.bytes = flags.kv_bytes > 0
                     ? flags.kv_bytes
                     : static_cast<int64_t>(static_cast<double>(left) * kDefaultShare);
  if (budget.bytes > left) {
    return Error(Code::kExhausted, "%.2f GiB for KV were asked for; %.2f GiB are left of %s",
                 static_cast<double>(budget.bytes) / (1 << 30),
                 static_cast<double>(left) / (1 << 30), Told(fixed, usable_bytes).c_str());
  }
  HEARTH_ASSIGN(const KvLayout layout, PlanKv(budget));
  for (const KvGroupLayout& group : layout.groups) plan.cpu.kv_blocks.push_back(group.num_blocks);
  SchedulerOptions& scheduler = plan.engine.scheduler;
  scheduler.max_sequences = flags.max_sequences;
  scheduler.max_step_tokens = flags.max_step_tokens;
  scheduler.max_context = budget.max_context;
  scheduler.experts = ExpertsOf(model.spec);
  scheduler.itl_target_us = static_cast<int64_t>(flags.itl_target_ms * 1000);
  plan.engine.admission.max_requests = flags.max_queued;
  plan.engine.kv.key_seed = SecretSeed();
  return plan;
}

Result<std::unique_ptr<Engine>> OpenEngine(const Model& model, const EngineFlags& flags) {
  HEARTH_ASSIGN(const EnginePlan plan,
                PlanEngine(model, flags, ReadTopology().usable_memory_bytes()));
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenCpuBackend(model, plan.cpu));
  return std::make_unique<Engine>(std::move(backend), plan.engine);
}

}  // namespace hearth
