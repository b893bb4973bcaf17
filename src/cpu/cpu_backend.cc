// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_backend.h"

#include <cstring>
#include <new>

#include "backend/immediate_backend.h"
#include "backend/plan_check.h"
#include "cpu/forward.h"
#include "cpu/kernel_choice.h"
#include "cpu/kv_memory.h"
#include "cpu/pack.h"
#include "cpu/packed_model.h"

namespace hearth {
namespace {

class CpuBackend : public ImmediateBackend {
 public:
  CpuBackend(const KernelTable& kernels, std::unique_ptr<ThreadPool> pool,
             std::unique_ptr<PackedModel> model, KvMemory kv, const CpuOptions& options,
             ScratchArena arena, const StepNeeds& needs, const StepLimits& limits)
      : kernels_(kernels),
        pool_(std::move(pool)),
        model_(std::move(model)),
        kv_(std::move(kv)),
        arena_(std::move(arena)),
        forward_(*model_, kernels_, *pool_, kv_, options.numerics, options.phases),
        max_step_tokens_(options.max_step_tokens) {
    forward_.Reserve(arena_, model_->spec(), needs, limits);
    ReserveRows(limits.rows);
  }

  std::string_view name() const override { return kernels_.isa; }
  KvLayout kv_layout() const override { return kv_.layout(); }
  int vocab_size() const override { return model_->spec().vocab_size; }
  int hidden_size() const override { return model_->spec().d_model; }

 protected:
  Result<bool> ComputeLayers(const StepPlan& plan, const WantsBreak& wants_break) override {
    return forward_.Layers(plan, wants_break);
  }

  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    forward_.Logits(plan, logits);
    return Status();
  }

  Status Copy(const BlockCopy& copy) override {
    const std::span<std::byte> block = kv_.block(copy.group, static_cast<int>(copy.block));
    if (!copy.to_host.empty()) std::memcpy(copy.to_host.data(), block.data(), block.size());
    if (!copy.from_host.empty()) std::memcpy(block.data(), copy.from_host.data(), block.size());
    return Status();
  }

 private:
  Status Check(const StepPlan& plan) const override {
    const ModelSpec& spec = model_->spec();
    return CheckPlan(plan, {.kv = kv_.layout(),
                            .vocab_size = spec.vocab_size,
                            .hidden_size = spec.d_model,
                            .max_context = spec.max_context,
                            .max_step_tokens = max_step_tokens_});
  }

  const KernelTable& kernels_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<PackedModel> model_;
  KvMemory kv_;
  ScratchArena arena_;  // before those who have pieces of it
  Forward forward_;
  int max_step_tokens_;
};

StepLimits LimitsOf(const CpuOptions& options) {
  return {options.max_step_tokens, options.max_rows, options.num_threads, options.expert_bytes > 0};
}

// kExhausted with what the memory was for.
Result<ScratchArena> MakeArena(const ModelSpec& spec, const StepNeeds& needs,
                               const CpuOptions& options) {
  const int64_t bytes = StepMemory::BytesFor(spec, needs, LimitsOf(options));
  Result<ScratchArena> arena = ScratchArena::Make(bytes);
  Status status = arena.status();
  if (status.ok() && options.reserves_kv) status = arena->Take();
  if (status.ok()) return arena;
  return Error(
      Code::kExhausted, "the system does not have the %.1f MiB that a step of %d tokens needs: %s",
      static_cast<double>(bytes) / (1 << 20), options.max_step_tokens, status.message().c_str());
}

}  // namespace

int64_t CpuStepBytes(const Model& model, const CpuOptions& options) {
  return StepMemory::BytesFor(model.spec, StepNeedsOf(model, options.numerics), LimitsOf(options));
}

KvLayout CpuKvLayout(const ModelSpec& spec, KvCode code) { return KvLayoutOf(spec, {}, code); }

Result<std::unique_ptr<Backend>> MakeCpuBackend(const Model& model, const CpuOptions& options) {
  const ModelSpec& spec = model.spec;
  if (!HasIsa(options.isa)) {
    return Error(Code::kInvalid, "this CPU does not support %s; its best instruction set is %s",
                 NameOf(options.isa), NameOf(BestIsa()));
  }
  if (spec.d_head > kMaxHeadDim || spec.n_heads / spec.n_kv_heads > kMaxGroup) {
    return Error(Code::kUnsupported,
                 "heads of %d values with %d query heads per KV head are not supported; the limits "
                 "are %d and %d",
                 spec.d_head, spec.n_heads / spec.n_kv_heads, kMaxHeadDim, kMaxGroup);
  }
  auto pool =
      std::make_unique<ThreadPool>(PlanWorkersHere(options.num_threads, options.numa_nodes));
  HEARTH_ASSIGN(KvMemory kv, KvMemory::Make(spec, options.kv_blocks, options.kv_code));
  HEARTH_ASSIGN(std::unique_ptr<PackedModel> packed,
                PackedModel::Make(model, *pool, options.on_progress, options.expert_bytes));
  if (packed->pager() != nullptr) packed->pager()->TellTo(options.paging);
  kv.Interleave(pool->plan().memory);
  if (options.reserves_kv) HEARTH_TRY(kv.Reserve(*pool));
  const StepNeeds needs = StepNeedsOf(model, options.numerics);
  HEARTH_ASSIGN(ScratchArena arena, MakeArena(spec, needs, options));
  try {
    return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(
        KernelsOf(options.isa), std::move(pool), std::move(packed), std::move(kv), options,
        std::move(arena), needs, LimitsOf(options)));
  } catch (const std::bad_alloc&) {
    return Error(Code::kExhausted, "the system does not have the %.1f MiB for %d rows of logits",
                 4.0 * options.max_rows * spec.vocab_size / (1 << 20), options.max_rows);
  }
}

}  // namespace hearth
