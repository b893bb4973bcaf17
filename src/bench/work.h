// SPDX-License-Identifier: Apache-2.0
// The least that a step must read from memory and compute, from the model's shapes alone.
#pragma once
#include <array>
#include <map>
#include <span>
#include <vector>

#include "backend/step_phases.h"
#include "bench/case.h"
#include "kv/layout.h"
#include "model/model.h"
namespace hearth {

// Indexed by StepPhase. Of the small operations only the weights count (norms, embedding rows), not
// the activations that they read and write.
struct PhaseWork {
  std::array<Work, kNumPhases> phases;
  Work& operator[](StepPhase phase) { return phases[static_cast<size_t>(phase)]; }
  const Work& operator[](StepPhase phase) const { return phases[static_cast<size_t>(phase)]; }
  Work sum() const;
};

// Keeps sums only: the model may be closed afterwards.
class WorkModel {
 public:
  explicit WorkModel(const Model& model);
  // `kv` says how many bytes a token's K and V take on this backend. Experts are counted as if
  // every token drew its own at random: that is what random tokens give and about what a mixed
  // batch gives. Prefill runs in steps of `chunk` tokens, each reading the weights anew.
  PhaseWork ByPhase(const BenchCase& what, const KvLayout& kv, int chunk) const;
  Work Of(const BenchCase& what, const KvLayout& kv, int chunk) const {
    return ByPhase(what, kv, chunk).sum();
  }
  // Bytes of the feed-forward for as many distinct experts of each layer as were really read
  // (PhaseTotals::experts_read).
  double ExpertBytes(std::span<const int64_t> experts_read) const;
  bool has_experts() const { return has_experts_; }

 private:
  // Weights, in values and in bytes of the file.
  struct Part {
    double values = 0, bytes = 0;
  };
  // One sequence's part of a step: tokens [first, first + count), attention only.
  Work AttentionOf(int first, int count, const KvLayout& kv) const;
  void AddWeights(int tokens, int rows_of_logits, PhaseWork& work) const;

  // Read by every step; the head only by one with logits, and of the experts those that were
  // chosen.
  std::array<Part, kNumPhases> parts_;
  Part experts_;
  std::vector<double> ffn_bytes_;  // [layer], of one expert or of the dense feed-forward
  double row_bytes_ = 0;           // of the embedding
  bool has_experts_ = false;
  double active_share_ = 1;    // of the experts, per token
  double head_values_ = 0;     // all query heads of a layer
  std::map<int, int> layers_;  // how many look back so far; 0: all the way
};

}  // namespace hearth
