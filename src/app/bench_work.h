// SPDX-License-Identifier: Apache-2.0
// The least that a step must read from memory and compute, from the model's shapes alone.
#pragma once
#include "app/bench_case.h"
#include "kv/layout.h"
#include "model/model.h"
namespace hearth {

// Keeps sums only: the model may be closed afterwards.
class WorkModel {
 public:
  explicit WorkModel(const Model& model);
  // `kv` says how many bytes a token's K and V take on this backend. Experts are counted as if
  // every token drew its own at random: that is what random tokens give and about what a mixed
  // batch gives. Prefill runs in steps of `chunk` tokens, each reading the weights anew.
  Work Of(const BenchCase& what, const KvLayout& kv, int chunk) const;

 private:
  // Weights, in values and in bytes of the file.
  struct Part {
    double values = 0, bytes = 0;
  };
  // One sequence's part of a step: tokens [first, first + count), attention only.
  void AddAttention(int first, int count, const KvLayout& kv, Work& work) const;
  void AddWeights(int tokens, int rows_of_logits, Work& work) const;

  Part dense_, experts_, head_;
  double row_bytes_ = 0;     // of the embedding
  double active_share_ = 1;  // of the experts, per token
  double head_values_ = 0;   // all query heads of a layer
  int full_layers_ = 0, window_layers_ = 0;
};

}  // namespace hearth
