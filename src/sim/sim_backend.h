// SPDX-License-Identifier: Apache-2.0
// A backend without hardware: runs SimModel through the block tables of the plan and distrusts
// every one of them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/immediate_backend.h"
#include "sim/sim_model.h"
namespace hearth {

// What happens around a step; the simulation implements it.
class SimWorld {
 public:
  virtual ~SimWorld() = default;
  // A step begins. An error is the step's own: what it was to write is then half written.
  struct Course {
    int64_t us = 0;
    Status status;
  };
  virtual Course OnStep(const StepPlan& plan) = 0;
  // Part of its time passes.
  virtual void Pass(int64_t us) = 0;
  // Before a block's bytes go to host memory or come from there.
  virtual Status OnCopy() { return Status(); }
  // Whether this sequence's numbers go wrong at `position`.
  virtual bool GoesBad(SeqId seq, int position) = 0;
  virtual uint64_t SaltOf(SeqId seq) const = 0;
};

// Blocks start as poison, and the rest of a block is poisoned again when its first cell is written:
// reading what was never written, or is somebody else's, is noticed. A step has kLayers layers of
// equal time, and is left between any two of them when that is wanted. Thread: one.
class SimBackend : public ImmediateBackend {
 public:
  static constexpr int kLayers = 8;
  SimBackend(const KvLayout& layout, int vocab, uint64_t seed, SimWorld& world);

  std::string_view name() const override { return "sim"; }
  KvLayout kv_layout() const override { return layout_; }
  int vocab_size() const override { return model_.vocab; }
  Result<bool> ComputeLayers(const StepPlan& plan, const WantsBreak& wants_break) override;
  Status Compute(const StepPlan& plan, std::span<float> logits) override;
  Status Copy(const BlockCopy& copy) override;

  const SimModel& model() const { return model_; }
  void set_habit(float habit) { model_.habit = habit; }
  // The first thing in a plan or a block that must not be; empty when all was well.
  const std::string& failure() const { return failure_; }

 private:
  struct Cell {
    uint64_t value = 0;
    int32_t position = -1;
    bool is_bad = true;  // not a number
  };
  struct UnderWay {
    const StepPlan* plan = nullptr;
    SimWorld::Course course;
    int layer = 0;
  };
  struct Group {
    std::vector<Cell> cells;
    std::vector<uint64_t> salts;  // per block: whose it is
  };
  struct Context {
    // By group: the cells a next token may see, oldest first.
    std::vector<std::vector<uint64_t>> seen;
    uint64_t sum = 0, full = 0;  // of the group that sees everything
    bool is_bad = false;
  };
  bool CheckPlan(const StepPlan& plan, size_t num_logits);
  bool CheckSlice(const SeqSlice& slice, const StepPlan& plan);
  int BlockAt(int group, const SeqSlice& slice, int position) const;
  Cell* At(int group, const SeqSlice& slice, int position);
  void ReadContext(const SeqSlice& slice, Context& context);
  void Write(int group, const SeqSlice& slice, int position, uint64_t value, bool is_bad);
  void RunSlice(const SeqSlice& slice, const StepPlan& plan, Context& context,
                std::span<float> logits);
  void Fault(const SeqSlice& slice, int position, const char* what);

  KvLayout layout_;
  SimModel model_;
  SimWorld& world_;
  std::vector<Group> groups_;
  std::vector<UnderWay> steps_;  // the one that was left, if any, and the one that runs
  std::vector<Context> contexts_;
  std::vector<uint64_t> sums_;  // RunSlice's, kept for its memory
  std::string failure_;
};

}  // namespace hearth
