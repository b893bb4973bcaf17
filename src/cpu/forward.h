// SPDX-License-Identifier: Apache-2.0
// One step through the layers: which kernel on which data, shared out over the thread pool. No
// arithmetic that matters to a result happens here; it is all in the kernel table.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.h"
#include "cpu/kernels.h"
#include "cpu/kv_memory.h"
#include "cpu/packed_model.h"
#include "cpu/phases.h"
#include "cpu/step_memory.h"
#include "platform/thread_pool.h"
namespace hearth {

// Thread: one at a time.
class Forward : public StepMemory {
 public:
  // `phases`, when not null, is told where the time of each step goes.
  Forward(const PackedModel& model, const KernelTable& kernels, ThreadPool& pool, KvMemory& kv,
          Numerics numerics, PhaseTotals* phases = nullptr);
  // The plan was checked: tokens, tables and rows are in range. True: all layers are done; false:
  // the step was left within them, and another plan may go through both calls before it
  // goes on. An error, when an expert that had to come from disk did not, ends the step.
  Result<bool> Layers(const StepPlan& plan, const WantsBreak& wants_break);
  // After its layers.
  void Logits(const StepPlan& plan, std::span<float> logits);

 private:
  struct Choice {
    int expert, slot;  // slot: row in the buffers that are sorted by expert
    float weight;
  };

  void Embed(const StepPlan& plan);
  void PlaceTokens(const StepPlan& plan);
  void NormAndQuantise(const float* gain, InputNeeds needs);
  void Attention(const StepPlan& plan, int layer);
  void TurnAndStore(const StepPlan& plan, int layer);
  void TurnAndStoreHeads(const StepPlan& plan, int layer, int token, KvMemory::Heads heads);
  void Attend(const StepPlan& plan, int layer);
  void FindNeeds();
  Status Ffn(int layer);
  void CountExperts(int layer);
  void DenseFfn(const PackedFfn& ffn);
  Status MoeFfn(int layer, RouterKind kind);
  void AddExperts();
  MatmulInput ExpertInputs(int layer, int rows);
  void RunExperts(int layer, std::span<const ExpertPager::Loaded> experts);
  Status RunPagedExperts(int layer, std::span<const ExpertPager::Loaded> experts);
  void ExpectExperts(int first);
  void ExpectExpertsOf(int layer);
  void Route(const PackedLayer& layer, RouterKind kind);
  void SortByExpert(int num_experts);
  void GluAndQuantise(int rows, int d_ff, InputNeeds needs);
  void Pool(const StepPlan& plan);
  template <class F>
  void EachToken(F&& body) {  // body(token, worker)
    pool_.Run(num_tokens_, 1, [&](Range range, int worker) {
      for (int t = range.begin; t < range.end; ++t) body(t, worker);
    });
  }

  const PackedModel& model_;
  const ModelSpec& spec_;
  const KernelTable& kernels_;
  ThreadPool& pool_;
  KvMemory& kv_;
  const Numerics numerics_;
  std::vector<double> frequencies_;
  struct FfnNeeds {
    InputNeeds gate, down;
  };
  std::vector<FfnNeeds> ffn_needs_;  // by layer

  // A step that was left: the half of a layer, attention or feed-forward, that it goes on with. Its
  // x_ is in left_x_.
  struct Left {
    const StepPlan* plan = nullptr;  // null: there is none
    int half = 0;
  };
  Left left_;

  int num_tokens_ = 0;
  std::vector<int> position_, slice_of_;  // [tokens]
  std::vector<Choice> choices_;           // [tokens, n_active_experts]
  std::vector<int> expert_begin_;         // [n_experts + 1]: slots of each expert
  std::vector<int> batch_begin_;          // [n_experts]: rows of each in what runs now, or -1
  std::vector<ExpertPager::Loaded> used_experts_;
  std::vector<AttendSlice> attend_slices_;
  PhaseClock clock_;
};

}  // namespace hearth
