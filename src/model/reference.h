// SPDX-License-Identifier: Apache-2.0
// The forward pass in plain double-precision loops: slow, short, right. It is the definition of
// the model; every backend is tested against it.
#pragma once
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/model.h"
namespace hearth {

// One sequence. Holds every K and V it has seen as doubles, so memory grows with the context.
// Thread: one at a time. The model must outlive it and its weights must have been checked.
class Reference {
 public:
  explicit Reference(const Model& model);

  enum class Wanted : unsigned char { kEveryRow, kLastRow };
  // Receives one position's logits, [vocab_size].
  using Emit = std::function<void(int position, std::span<const double> logits)>;
  // Appends tokens to the sequence and computes them. Splitting a sequence over several calls
  // gives the same bits as one call. A token outside the vocabulary or a sequence longer than the
  // model's context is refused, with nothing appended.
  Status Append(std::span<const Token> tokens, Wanted wanted, const Emit& emit);

  // Named points on the way, for bisecting a difference: `values` is [tokens, width] and lives
  // only during the call; layer is -1 outside the layers.
  using Observer =
      std::function<void(std::string_view point, int layer, std::span<const double> values)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  int num_computed() const { return num_computed_; }

 private:
  struct LayerCache {
    std::vector<double> k, v;  // [position, n_kv_heads, d_head]
  };
  using Rows = std::vector<double>;  // [tokens, width], width by context

  void Attention(int layer, Rows& x, int count);
  void Attend(int layer, const Rows& q, int count, Rows& out) const;
  void Ffn(int layer, Rows& x, int count);
  void Turn(std::span<double> head, int position) const;
  void Observe(std::string_view point, int layer, const Rows& values) const;

  const Model& model_;
  std::vector<double> frequencies_;  // [n_dims / 2]
  std::vector<LayerCache> caches_;
  Observer observer_;
  int num_computed_ = 0;
};

}  // namespace hearth
