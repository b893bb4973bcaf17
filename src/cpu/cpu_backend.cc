// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_backend.h"

#include <cstring>

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
             std::unique_ptr<PackedModel> model, KvMemory kv, const CpuOptions& options)
      : kernels_(kernels),
        pool_(std::move(pool)),
        model_(std::move(model)),
        kv_(std::move(kv)),
        forward_(*model_, kernels_, *pool_, kv_, options.phases),
        max_step_tokens_(options.max_step_tokens) {}

  std::string_view name() const override { return kernels_.isa; }
  KvLayout kv_layout() const override { return kv_.layout(); }
  int vocab_size() const override { return model_->spec().vocab_size; }
  int hidden_size() const override { return model_->spec().d_model; }

 protected:
  Status Compute(const StepPlan& plan, std::span<float> logits) override {
    return forward_.Run(plan, logits);
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
  Forward forward_;
  int max_step_tokens_;
};

}  // namespace

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
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(
      KernelsOf(options.isa), std::move(pool), std::move(packed), std::move(kv), options));
}

}  // namespace hearth
