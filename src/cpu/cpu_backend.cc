// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>

#include "cpu/forward.h"
#include "cpu/kernel_choice.h"
#include "cpu/kv_memory.h"
#include "cpu/pack.h"
#include "cpu/packed_model.h"
#include "model/costs.h"

namespace hearth {
namespace {

class CpuBackend : public Backend {
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

  Status Run(const StepPlan& plan, std::span<float> logits) override {
    HEARTH_TRY(Check(plan, logits));
    if (!plan.tokens.empty()) forward_.Run(plan, logits);
    return Status();
  }

  Status ReadBlock(int group, BlockId id, std::span<std::byte> out) override {
    HEARTH_TRY(CheckBlock(group, id, out.size()));
    std::memcpy(out.data(), kv_.block(group, static_cast<int>(id)).data(), out.size());
    return Status();
  }

  Status WriteBlock(int group, BlockId id, std::span<const std::byte> in) override {
    HEARTH_TRY(CheckBlock(group, id, in.size()));
    std::memcpy(kv_.block(group, static_cast<int>(id)).data(), in.data(), in.size());
    return Status();
  }

 private:
  Status CheckBlock(int group, BlockId id, size_t size) const {
    if (group < 0 || group >= kv_.layout().num_groups()) {
      return Error(Code::kInvalid, "KV group %d of %d", group, kv_.layout().num_groups());
    }
    const KvGroupLayout& layout = kv_.layout().group(group);
    const auto index = static_cast<int>(id);
    if (index >= 0 && index < layout.num_blocks &&
        static_cast<int64_t>(size) == layout.block_bytes) {
      return Status();
    }
    return Error(Code::kInvalid, "block %d of %zu bytes; there are %d of %lld", index, size,
                 layout.num_blocks, static_cast<long long>(layout.block_bytes));
  }

  // A plan that would reach outside memory is refused here, whoever made it.
  Status Check(const StepPlan& plan, std::span<float> logits) const {
    const ModelSpec& spec = model_->spec();
    if (plan.tokens.size() > static_cast<size_t>(max_step_tokens_)) {
      return Error(Code::kInvalid, "a step of %zu tokens, the limit is %d", plan.tokens.size(),
                   max_step_tokens_);
    }
    const size_t room =
        static_cast<size_t>(plan.num_logits_rows) * static_cast<size_t>(spec.vocab_size);
    if (plan.num_logits_rows < 0 || logits.size() < room) {
      return Error(Code::kInvalid, "%d rows of logits do not fit %zu floats", plan.num_logits_rows,
                   logits.size());
    }
    for (const Token token : plan.tokens) {
      if (token >= 0 && token < spec.vocab_size) continue;
      return Error(Code::kInvalid, "token %d is outside the vocabulary of %d", token,
                   spec.vocab_size);
    }
    int next = 0, rows = 0;
    for (const SeqSlice& slice : plan.slices) {
      HEARTH_TRY(CheckSlice(plan, slice, next, rows));
      next += slice.count;
      rows += slice.num_logits;
    }
    if (next != static_cast<int>(plan.tokens.size()) || rows != plan.num_logits_rows) {
      return Error(Code::kInvalid, "slices cover %d of %zu tokens and %d of %d rows", next,
                   plan.tokens.size(), rows, plan.num_logits_rows);
    }
    return Status();
  }

  Status CheckSlice(const StepPlan& plan, const SeqSlice& slice, int next, int rows) const {
    if (slice.first != next || slice.count < 1 || slice.num_computed < 0 || slice.num_logits < 0 ||
        slice.num_logits > slice.count || slice.logits_row != rows) {
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

namespace {

// The buffers of forward.h for so many tokens: floats, and two bytes for each quantised value.
int64_t StepBytes(const ModelSpec& spec, int64_t tokens) {
  const int64_t d = spec.d_model, q = int64_t{spec.n_heads} * spec.d_head;
  const int64_t kv = int64_t{spec.n_kv_heads} * spec.d_head;
  const int64_t d_ff = spec.n_experts > 0 ? spec.d_ff_expert : spec.d_ff;
  const int64_t slots = tokens * std::max(1, spec.n_active_experts);
  const int64_t of_tokens = 4 * (3 * d + 2 * q + 2 * kv + spec.rope.n_dims + spec.n_experts);
  const int64_t of_slots = 4 * (2 * d_ff + d) + 2 * std::max(d, d_ff);
  return tokens * (of_tokens + 2 * std::max(d, q)) + slots * of_slots;
}

}  // namespace

KvLayout CpuKvLayout(const ModelSpec& spec) { return KvLayoutOf(spec, {}); }

CpuMemoryPlan PlanMemory(const Model& model, const CpuOptions& options) {
  CpuMemoryPlan plan;
  plan.weight_bytes = PackedModel::BytesFor(model);
  const ModelSpec& spec = model.spec;
  plan.kv_bytes = KvLayoutOf(spec, options.kv_blocks).total_bytes();
  plan.step_bytes = StepBytes(spec, options.max_step_tokens);
  return plan;
}

std::string SlowFormatsNote(const Model& model) {
  std::string names;
  double slow = 0, all = 0;
  VisitWeights(model, [&](const MatView& weight, const WeightPlace& place) {
    const double bytes = place.share * static_cast<double>(BytesOf(weight));
    all += bytes;
    if (weight.rows == 1 || PackKindOf(weight) != PackKind::kRaw) return;
    slow += bytes;
    const std::string name = NameOf(weight.dtype);
    if (names.find(name) == std::string::npos) names += (names.empty() ? "" : ", ") + name;
  });
  if (slow <= 0) return "";
  // Rows decoded one by one are read at about 0.4 GB/s a core, packed ones at 12 to 20.
  return Printf(
      "%.0f %% of the weights read per token have no fast kernel (%s, or a width that is no "
      "multiple of its block): that part runs about 30 times slower",
      100 * slow / all, names.c_str());
}

Result<std::unique_ptr<Backend>> MakeCpuBackend(const Model& model, const CpuOptions& options) {
  const ModelSpec& spec = model.spec;
  if (options.isa > BestIsa()) {
    return Error(Code::kInvalid, "this machine has no %s; its best is %s", NameOf(options.isa),
                 NameOf(BestIsa()));
  }
  if (spec.d_head > kMaxHeadDim || spec.n_heads / spec.n_kv_heads > kMaxGroup) {
    return Error(Code::kUnsupported, "heads of %d values, %d per KV head; the limits are %d and %d",
                 spec.d_head, spec.n_heads / spec.n_kv_heads, kMaxHeadDim, kMaxGroup);
  }
  auto pool = std::make_unique<ThreadPool>(options.num_threads);
  HEARTH_ASSIGN(KvMemory kv, KvMemory::Make(spec, options.kv_blocks));
  HEARTH_ASSIGN(std::unique_ptr<PackedModel> packed,
                PackedModel::Make(model, *pool, options.on_progress));
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(
      KernelsOf(options.isa), std::move(pool), std::move(packed), std::move(kv), options));
}

}  // namespace hearth
