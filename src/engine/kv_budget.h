// SPDX-License-Identifier: Apache-2.0
// How many KV blocks a budget of bytes buys. Pure arithmetic; nothing is allocated here.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "kv/layout.h"
namespace hearth {

struct KvBudget {
  int64_t bytes = 0;               // for all blocks of both groups
  int64_t full_block_bytes = 0;    // 0: the model has no layer that sees everything
  int64_t window_block_bytes = 0;  // 0: none with a window
  int window = 0;                  // how far those look back, themselves included
  int max_sequences = 256;         // running at a time
  int max_step_tokens = 2048;      // in one step
  int max_context = 131072;        // of one sequence
};

struct KvBlocks {
  int full = 0, window = 0;
  int64_t bytes = 0;       // what they take, at most the budget
  int64_t max_tokens = 0;  // that the layers which see everything can hold, over all sequences
};

// Window layers need few blocks per sequence, whatever its length, and some for the cuts that are
// kept so that others can start there; the rest of the budget goes to the layers that see
// everything. Never more than the budget; kExhausted, with the numbers, when it does not hold a
// sequence of 512 tokens.
Result<KvBlocks> PlanKv(const KvBudget& budget);

}  // namespace hearth
