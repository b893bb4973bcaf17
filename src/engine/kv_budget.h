// SPDX-License-Identifier: Apache-2.0
// How many KV blocks a budget of bytes buys. Pure arithmetic; nothing is allocated here.
#pragma once
#include <cstdint>

#include "base/result.h"
#include "kv/layout.h"
namespace hearth {

struct KvBudget {
  int64_t bytes = 0;           // for the blocks of all groups
  KvLayout layout;             // its numbers of blocks are not looked at
  int max_sequences = 256;     // running at a time
  int max_step_tokens = 2048;  // in one step
  int max_context = 131072;    // of one sequence
};

// The layout with its numbers of blocks. Groups with a window need few blocks per sequence,
// whatever its length, and some for the checkpoints that are kept so that others can start there;
// the rest of the budget goes to the layers that see everything. Never more than the budget;
// kExhausted, with the numbers, when it does not hold a sequence of 512 tokens.
Result<KvLayout> PlanKv(const KvBudget& budget);

}  // namespace hearth
