// SPDX-License-Identifier: Apache-2.0
// The only door between "what to compute" and "on what hardware". Crossed once per step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
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
  // Its block tables, one per group of kv_layout(), borrowed until Finish returns. They cover every
  // position up to num_computed + count. In a group with a window, entries that no token of the
  // slice can see may be kNone.
  std::span<const BlockTable> tables = {};
  // Rows of results wanted, for the slice's last `num_rows` tokens: the plan's rows [first_row,
  // first_row + num_rows).
  int first_row = 0, num_rows = 0;
  // For pooling: to these hidden_size() numbers the backend adds what leaves the last norm for the
  // slice's last `num_pooled` tokens, one token after the other in their order, so that the bits of
  // a sum do not depend on how its tokens were cut into steps.
  std::span<double> pool = {};
  int num_pooled = 0;
};

// What is wanted of a row. Less than all logits spares a device the way to host memory; what a
// backend can do beside logits is in its capabilities.
struct RowAsk {
  enum class Kind : uint8_t { kLogits, kTop, kToken };
  Kind kind = Kind::kLogits;
  int top = 0;  // with kTop: how many
};

struct TokenLogit {
  Token token = -1;
  float logit = 0;
};

// What came of a row: what was asked for, the rest is empty. When the computation met a value that
// is no number, logits and those of `top` are all NaN, and `token` is -1; other rows are untouched.
struct RowResult {
  std::span<const float> logits = {};    // of the whole vocabulary
  std::span<const TokenLogit> top = {};  // the largest, in falling order, equal ones by token
  Token token = -1;                      // of the largest logit; of equal ones the lowest
};

// The bytes of one block to host memory or from there; one of the two spans is set, and has the
// block's size. Borrowed until Finish returns.
struct BlockCopy {
  int group = 0;
  BlockId block{};
  std::span<std::byte> to_host = {};
  std::span<const std::byte> from_host = {};
};

// One batch, prefill and decode side by side. The copies are made before anything is computed: a
// slice may read what they brought. A plan of copies alone is a step too.
struct StepPlan {
  std::vector<Token> tokens;
  std::vector<SeqSlice> slices;
  int num_rows = 0;
  std::vector<RowAsk> asks;  // one per row; none at all: logits for every row
  std::vector<BlockCopy> copies;

  RowAsk AskOf(int row) const { return asks.empty() ? RowAsk() : asks[static_cast<size_t>(row)]; }
  bool empty() const { return slices.empty() && copies.empty(); }
};

struct BackendCapabilities {
  // Logits have the bits that docs/numerics.md defines. A backend without them is used only where
  // somebody asked for it by name.
  bool has_canonical_bits = true;
  int preferred_tokens = 1;  // chunks of prompt are best a multiple of this
  int max_top = 0;           // rows may be asked for this many of the largest logits; 0: for none
  bool chooses_tokens = false;  // rows may be asked for their likeliest token alone
};

// Asked between two layers of a step: whether the step should be left there for now.
using WantsBreak = std::function<bool()>;

// A step is Begin, then Finish; one is under way at a time, unless it was left at a break: then one
// other, of other sequences, may Begin and Finish before it goes on. Thread: one at a time (the
// engine's). Implementations own weights, KV memory and the memory of results.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual KvLayout kv_layout() const = 0;
  virtual int vocab_size() const = 0;
  // Numbers in the state of a token that leaves the last norm; 0: this backend does not pool them.
  virtual int hidden_size() const { return 0; }
  virtual BackendCapabilities capabilities() const { return {}; }

  // Starts the plan, which is borrowed until Finish returns. An error means that nothing of it was
  // started; then Finish is not called.
  virtual Status Begin(const StepPlan& plan) = 0;
  // Between Begin and Finish, as often as wanted: computes until nothing but Finish is left (true),
  // or leaves the step between two layers because `wants_break` said so (false). Results have the
  // same bits either way. A backend that cannot leave a step says true at once.
  virtual bool Advance(const WantsBreak& wants_break) {
    static_cast<void>(wants_break);
    return true;
  }
  // Waits for the step; one result per row, good until the next Begin. The bits of a sequence's
  // results depend on its own tokens only: not on neighbours, slicing, block placement or threads.
  // After an error the blocks that the step was to write hold anything.
  virtual Result<std::span<const RowResult>> Finish() = 0;
};

// Both in one, for callers with nothing to do in between. kExhausted when the step found no memory.
Result<std::span<const RowResult>> RunStep(Backend& backend, const StepPlan& plan);
// The same, and whenever the step is left because `wants_break` said so, `in_break` is called.
Result<std::span<const RowResult>> RunStep(Backend& backend, const StepPlan& plan,
                                           const WantsBreak& wants_break,
                                           const std::function<void()>& in_break);

}  // namespace hearth
