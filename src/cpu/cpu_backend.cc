// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>

#include "backend/immediate_backend.h"
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
    forward_.Run(plan, logits);
    return Status();
  }

  Status Copy(const BlockCopy& copy) override {
    const std::span<std::byte> block = kv_.block(copy.group, static_cast<int>(copy.block));
    if (!copy.to_host.empty()) std::memcpy(copy.to_host.data(), block.data(), block.size());
    if (!copy.from_host.empty()) std::memcpy(block.data(), copy.from_host.data(), block.size());
    return Status();
  }

 private:
  Status CheckCopy(const BlockCopy& copy) const {
    if (copy.group < 0 || copy.group >= kv_.layout().num_groups()) {
      return Error(Code::kInvalid, "KV group %d of %d", copy.group, kv_.layout().num_groups());
    }
    const KvGroupLayout& layout = kv_.layout().group(copy.group);
    const auto index = static_cast<int>(copy.block);
    const size_t size = copy.to_host.size() + copy.from_host.size();
    const bool is_one_way = copy.to_host.empty() || copy.from_host.empty();
    if (index >= 0 && index < layout.num_blocks && is_one_way &&
        static_cast<int64_t>(size) == layout.block_bytes) {
      return Status();
    }
    return Error(Code::kInvalid, "a copy of block %d of %zu bytes; there are %d of %lld", index,
                 size, layout.num_blocks, static_cast<long long>(layout.block_bytes));
  }

  // A plan that would reach outside memory is refused here, whoever made it.
  Status Check(const StepPlan& plan) const override {
    const ModelSpec& spec = model_->spec();
    for (const BlockCopy& copy : plan.copies) HEARTH_TRY(CheckCopy(copy));
    if (plan.tokens.size() > static_cast<size_t>(max_step_tokens_)) {
      return Error(Code::kInvalid, "a step of %zu tokens, the limit is %d", plan.tokens.size(),
                   max_step_tokens_);
    }
    if (plan.num_rows < 0) return Error(Code::kInvalid, "%d rows", plan.num_rows);
    for (const Token token : plan.tokens) {
      if (token >= 0 && token < spec.vocab_size) continue;
      return Error(Code::kInvalid, "token %d is outside the vocabulary of %d tokens", token,
                   spec.vocab_size);
    }
    int next = 0, rows = 0;
    for (const SeqSlice& slice : plan.slices) {
      HEARTH_TRY(CheckSlice(plan, slice, next, rows));
      next += slice.count;
      rows += slice.num_rows;
    }
    if (next != static_cast<int>(plan.tokens.size()) || rows != plan.num_rows) {
      return Error(Code::kInvalid, "slices cover %d of %zu tokens and %d of %d rows", next,
                   plan.tokens.size(), rows, plan.num_rows);
    }
    return Status();
  }

  Status CheckSlice(const StepPlan& plan, const SeqSlice& slice, int next, int rows) const {
    if (slice.first != next || slice.count < 1 || slice.num_computed < 0 || slice.num_rows < 0 ||
        slice.num_rows > slice.count || slice.first_row != rows) {
      return Error(Code::kInvalid, "the slice at token %d is malformed", next);
    }
    if (slice.num_pooled < 0 || slice.num_pooled > slice.count ||
        (slice.num_pooled > 0 && slice.pool.size() != static_cast<size_t>(hidden_size()))) {
      return Error(Code::kInvalid, "the slice at token %d pools %d tokens into %zu numbers", next,
                   slice.num_pooled, slice.pool.size());
    }
    const int64_t end = int64_t{slice.num_computed} + slice.count;
    if (end > model_->spec().max_context ||
        slice.first + slice.count > static_cast<int>(plan.tokens.size())) {
      return Error(Code::kInvalid, "the slice at token %d ends at position %lld of %d", next,
                   static_cast<long long>(end), model_->spec().max_context);
    }
    const KvLayout& layout = kv_.layout();
    if (slice.tables.size() != layout.groups.size()) {
      return Error(Code::kInvalid, "%zu block tables for %d groups", slice.tables.size(),
                   layout.num_groups());
    }
    for (size_t i = 0; i < layout.groups.size(); ++i) {
      const int window = layout.groups[i].window;
      const int64_t visible =
          window == 0 ? 0 : std::max<int64_t>(0, int64_t{slice.num_computed} - window + 1);
      HEARTH_TRY(CheckTable(slice.tables[i], layout.groups[i], visible, end));
    }
    return Status();
  }

  static Status CheckTable(std::span<const BlockId> table, const KvGroupLayout& layout,
                           int64_t begin, int64_t end) {
    for (int64_t i = begin / kBlockTokens; i * kBlockTokens < end; ++i) {
      const int id = static_cast<size_t>(i) < table.size()
                         ? static_cast<int>(table[static_cast<size_t>(i)])
                         : -1;
      if (id >= 0 && id < layout.num_blocks) continue;
      return Error(Code::kInvalid, "table entry %lld is block %d; there are %d",
                   static_cast<long long>(i), id, layout.num_blocks);
    }
    return Status();
  }

  const KernelTable& kernels_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<PackedModel> model_;
  KvMemory kv_;
  Forward forward_;
  int max_step_tokens_;
};

}  // namespace

KvLayout CpuKvLayout(const ModelSpec& spec) { return KvLayoutOf(spec, {}); }

Result<std::unique_ptr<Backend>> MakeCpuBackend(const Model& model, const CpuOptions& options) {
  const ModelSpec& spec = model.spec;
  if (options.isa > BestIsa()) {
    return Error(Code::kInvalid, "this CPU does not support %s; its best instruction set is %s",
                 NameOf(options.isa), NameOf(BestIsa()));
  }
  if (spec.d_head > kMaxHeadDim || spec.n_heads / spec.n_kv_heads > kMaxGroup) {
    return Error(Code::kUnsupported,
                 "heads of %d values with %d query heads per KV head are not supported; the limits "
                 "are %d and %d",
                 spec.d_head, spec.n_heads / spec.n_kv_heads, kMaxHeadDim, kMaxGroup);
  }
  auto pool = std::make_unique<ThreadPool>(options.num_threads);
  HEARTH_ASSIGN(KvMemory kv, KvMemory::Make(spec, options.kv_blocks));
  HEARTH_ASSIGN(std::unique_ptr<PackedModel> packed,
                PackedModel::Make(model, *pool, options.on_progress));
  if (options.reserves_kv) HEARTH_TRY(kv.Reserve(*pool));
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(
      KernelsOf(options.isa), std::move(pool), std::move(packed), std::move(kv), options));
}

}  // namespace hearth
