// SPDX-License-Identifier: Apache-2.0
// What the CPU backend will hold, and which kernels and threads it takes when nobody says.
#include <algorithm>

#include "cpu/cpu_backend.h"
#include "cpu/kv_memory.h"
#include "cpu/pack.h"
#include "cpu/packed_model.h"
#include "model/costs.h"
#include "platform/topology.h"

namespace hearth {
namespace {

// A sentence about weights in formats without a fast kernel, or "" when all have one.
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
      "%.0f %% of the weights read per token have no fast kernel (%s, or a width that is not a "
      "multiple of the block size); they run about 30 times slower",
      100 * slow / all, names.c_str());
}

// What the experts take: all their bytes, or the frames that the memory allowed for them holds.
Status PlanExperts(const Model& model, BackendPlan& plan) {
  const PackedModel::PagedSizes sizes = PackedModel::PagedSizesOf(model);
  plan.num_experts = sizes.experts;
  plan.expert_layers = sizes.layers;
  plan.resident_bytes = sizes.resident;
  plan.frame_bytes = sizes.experts > 0 ? sizes.frame : 0;
  if (plan.options.expert_bytes == 0) return Status();
  HEARTH_TRY(PackedModel::CheckPaging(model, plan.options.expert_bytes));
  plan.weight_bytes = sizes.resident + sizes.frames(plan.options.expert_bytes) * sizes.frame;
  return Status();
}

CpuOptions CpuOptionsOf(const BackendPlan& plan) {
  CpuOptions options;
  options.isa = IsaNamed(plan.options.isa).value_or(Isa::kScalar);
  options.num_threads = plan.options.num_threads;
  options.numa_nodes = plan.options.numa_nodes;
  for (const KvGroupLayout& group : plan.kv.groups) options.kv_blocks.push_back(group.num_blocks);
  options.kv_code = plan.kv.code;
  options.numerics = plan.options.numerics;
  options.expert_bytes = plan.options.expert_bytes;
  options.paging = plan.options.paging;
  options.reserves_kv = plan.options.reserves_kv;
  options.max_step_tokens = plan.options.max_step_tokens;
  options.max_rows = plan.options.max_rows;
  options.on_progress = plan.options.on_progress;
  options.phases = plan.options.phases;
  return options;
}

class CpuFactory : public BackendFactory {
 public:
  std::string_view name() const override { return "cpu"; }

  Result<BackendOptions> Complete(const BackendOptions& options) const override {
    BackendOptions complete = options;
    if (complete.isa.empty()) complete.isa = NameOf(BestIsa());
    if (!IsaNamed(complete.isa)) {
      return Error(Code::kInvalid, "--isa %s: expected %s", Quoted(complete.isa).c_str(),
                   IsaNames().c_str());
    }
    if (complete.num_threads <= 0) complete.num_threads = ReadTopology().useful_threads();
    return complete;
  }

  Result<BackendPlan> Plan(const Model& model, const BackendOptions& options) const override {
    BackendPlan plan;
    HEARTH_ASSIGN(plan.options, Complete(options));
    plan.kv = CpuKvLayout(model.spec, options.kv_code);
    plan.weight_bytes = PackedModel::BytesFor(model);
    HEARTH_TRY(PlanExperts(model, plan));
    plan.step_bytes = CpuStepBytes(model, CpuOptionsOf(plan));
    plan.result_bytes = int64_t{options.max_rows} * model.spec.vocab_size * 4;
    plan.warning = SlowFormatsNote(model);
    return plan;
  }

  Result<uint64_t> UsableBytes(const BackendOptions& options) const override {
    const uint64_t usable = ReadTopology().usable_memory_bytes();
    return usable - std::min(usable, static_cast<uint64_t>(options.beside_bytes));
  }

  Result<std::unique_ptr<Backend>> Open(const Model& model,
                                        const BackendPlan& plan) const override {
    return MakeCpuBackend(model, CpuOptionsOf(plan));
  }
};

}  // namespace

const BackendFactory& CpuBackends() {
  static const CpuFactory factory;
  return factory;
}

}  // namespace hearth
