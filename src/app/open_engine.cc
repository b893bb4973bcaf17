// SPDX-License-Identifier: Apache-2.0
#include "app/open_engine.h"

#include <algorithm>

#include "app/open_model.h"
#include "app/paging.h"
#include "backend/numerics.h"
#include "base/fresh_random.h"
#include "engine/kv_budget.h"
#include "kv/content_seed.h"

namespace hearth {
namespace {

// The first budget a machine should try: what is left over is for the page cache and neighbours.
constexpr double kDefaultShare = 0.5;

// Without a tier keys of cached blocks never leave the process, so their secret need not outlive
// it, and the model's digest need not be known.
uint64_t KeySeed(const KvLayout& layout, Numerics numerics) {
  const std::string secret = FreshHex(16);
  return ContentSeed({.numerics_version = BlockNumerics(numerics, layout.code),
                      .layout = layout,
                      .secret = secret});
}

}  // namespace

ExpertCounts ExpertsOf(const ModelSpec& spec) { return {spec.n_experts, spec.n_active_experts}; }

Result<EnginePlan> PlanEngine(const Model& model, const EngineFlags& flags, uint64_t usable_bytes) {
  EnginePlan plan;
  SchedulerOptions& scheduler = plan.engine.scheduler;
  scheduler.max_sequences = flags.max_sequences;
  scheduler.max_step_tokens = flags.max_step_tokens;
  HEARTH_ASSIGN(BackendOptions options, OptionsFrom(flags.hardware));
  options.max_step_tokens = flags.max_step_tokens;
  options.max_rows = WidestStepRows(scheduler);
  options.reserves_kv = flags.reserves_kv;
  HEARTH_ASSIGN(const FittedPlan fitted,
                PlanWithin(model, options, flags.hardware.paging, flags.kv_bytes, usable_bytes));
  plan.backend = fitted.backend;  // no blocks yet
  KvBudget budget;
  budget.layout = plan.backend.kv;
  budget.max_sequences = flags.max_sequences;
  budget.max_step_tokens = flags.max_step_tokens;
  HEARTH_ASSIGN(budget.max_context, ContextOf(model.spec, flags.max_context));
  const int64_t left = static_cast<int64_t>(usable_bytes) - plan.backend.total_bytes();
  if (left <= 0) {
    return Error(
        Code::kExhausted,
        "no memory is left for the KV cache: needs %s; use a smaller model, or free memory",
        Told(plan.backend, usable_bytes).c_str());
  }
  budget.bytes = flags.kv_bytes > 0 ? flags.kv_bytes : fitted.kv_bytes;
  if (budget.bytes == 0) {
    budget.bytes = static_cast<int64_t>(static_cast<double>(left) * kDefaultShare);
  }
  if (budget.bytes > left) {
    return Error(
        Code::kExhausted,
        "not enough memory for a KV cache of %.2f GiB: %.2f GiB are left of %s; lower --kv-memory",
        InGib(budget.bytes), InGib(left), Told(plan.backend, usable_bytes).c_str());
  }
  HEARTH_ASSIGN(plan.backend.kv, PlanKv(budget));
  scheduler.max_context = budget.max_context;
  scheduler.experts = ExpertsOf(model.spec);
  scheduler.itl_target_us = static_cast<int64_t>(flags.itl_target_ms * 1000);
  plan.engine.admission.max_requests = flags.max_queued;
  plan.engine.kv.key_seed = KeySeed(plan.backend.kv, plan.backend.options.numerics);
  plan.engine.kv.watch = flags.watch;
  return plan;
}

Result<std::unique_ptr<Engine>> OpenEngine(const Model& model, const EngineFlags& flags) {
  HEARTH_ASSIGN(const BackendOptions options, OptionsFrom(flags.hardware));
  HEARTH_ASSIGN(const uint64_t usable, UsableBytesOn(options));
  HEARTH_ASSIGN(EnginePlan plan, PlanEngine(model, flags, usable));
  CacheFlags cache = flags.cache;
  cache.numerics = plan.backend.options.numerics;
  OpenedTier opened = OpenTier(cache, model, plan.backend.kv);
  if (opened.tier != nullptr) plan.engine.kv.key_seed = opened.key_seed;
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenBackend(model, plan.backend));
  WatchOptions watch;
  watch.stall_us = static_cast<int64_t>(flags.stall_s * 1e6);
  return std::make_unique<Engine>(std::move(backend), plan.engine, watch, std::move(opened.tier));
}

}  // namespace hearth
