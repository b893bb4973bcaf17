// SPDX-License-Identifier: Apache-2.0
// The only door between "what to compute" and "on what hardware". Crossed once per step.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kv/layout.h"
namespace hearth {

// One sequence's share of a step. A decoding sequence is a slice of one token; a chunk of prompt is
// a slice of many; there are no phases.
struct SeqSlice {
  SeqId seq{};
  int first = 0, count = 0;  // its tokens are plan.tokens[first, first + count)
  int num_computed = 0;      // tokens whose K and V are already in the blocks
  // Its block tables, one per group of kv_layout(), borrowed until Run returns. They cover every
  // position up to num_computed + count. In a group with a window, entries that no token of the
  // slice can see may be kNone.
  std::span<const BlockTable> tables = {};
  // Rows of logits wanted, for the slice's last `num_logits` tokens; they go to rows
  // [logits_row, logits_row + num_logits).
  int logits_row = 0, num_logits = 0;
  // For pooling: to these hidden_size() numbers the backend adds what leaves the last norm for the
  // slice's last `num_pooled` tokens, one token after the other in their order, so that the bits of
  // a sum do not depend on how its tokens were cut into steps.
  std::span<double> pool = {};
  int num_pooled = 0;
};

// One batch, prefill and decode side by side.
struct StepPlan {
  std::vector<Token> tokens;
  std::vector<SeqSlice> slices;
  int num_logits_rows = 0;
};

// Thread: one at a time (the engine's). Implementations own weights and KV memory.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual KvLayout kv_layout() const = 0;
  virtual int vocab_size() const = 0;
  // Numbers in the state of a token that leaves the last norm; 0: this backend does not pool them.
  virtual int hidden_size() const { return 0; }
  // Computes the plan. `logits` is [num_logits_rows, vocab_size]. The bits of a sequence's logits
  // depend on its own tokens only: not on neighbours, slicing, block placement or threads. A row
  // whose computation met a value that is no number is all NaN; its neighbours are untouched.
  virtual Status Run(const StepPlan& plan, std::span<float> logits) = 0;
  // Raw bytes of one block, for the tiers below RAM. Status, because on a GPU this is a copy.
  virtual Status ReadBlock(int group, BlockId id, std::span<std::byte> out) = 0;
  virtual Status WriteBlock(int group, BlockId id, std::span<const std::byte> in) = 0;
};

}  // namespace hearth
