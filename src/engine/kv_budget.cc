// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_budget.h"

#include <algorithm>
#include <limits>

namespace hearth {
namespace {

// A pool that holds less is of no use to anybody.
constexpr int kLeastTokens = 512;
// Window blocks before every 512th token are kept (KvPolicy::window_every), and before the end of
// every prompt and turn: as many again for turns of some 500 tokens, which is short.
constexpr int kTokensPerKeptCut = 256;
// Of the budget, for the window blocks of running sequences. With gpt-oss one sequence holds 10 of
// them, as much as 160 tokens in the other layers: below some 6,000 tokens of pool 256 sequences
// could not run anyway.
constexpr int64_t kMostForRunning = 4;  // a quarter

int64_t BlocksOf(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

int Clamped(int64_t blocks) {
  return static_cast<int>(std::min<int64_t>(blocks, std::numeric_limits<int32_t>::max() / 2));
}

}  // namespace

Result<KvBlocks> PlanKv(const KvBudget& budget) {
  const int64_t full_bytes = budget.full_block_bytes, window_bytes = budget.window_block_bytes;
  const int64_t per_cut = BlocksOf(budget.window);
  // While it decodes, a sequence's window lies in at most one block more than it fills; a prompt's
  // chunk is there besides, and at least one of the longest must fit.
  const int64_t per_sequence = per_cut + 1;
  int64_t fixed = 0;
  if (window_bytes > 0) {
    const int64_t least = per_sequence + BlocksOf(kLeastTokens);
    const int64_t wanted = budget.max_sequences * per_sequence + BlocksOf(budget.max_step_tokens);
    fixed = std::max(least, std::min(wanted, budget.bytes / kMostForRunning / window_bytes));
  }
  const int64_t rest = budget.bytes - fixed * window_bytes;
  KvBlocks blocks;
  if (full_bytes > 0) {
    // Every full block brings its share of kept cuts: `per_cut` window blocks for 16 full ones.
    constexpr int64_t kFullPerCut = kTokensPerKeptCut / kBlockTokens;
    const int64_t group_bytes = kFullPerCut * full_bytes + per_cut * window_bytes;
    const int64_t useful = BlocksOf(budget.max_context) * budget.max_sequences;
    const int64_t full = std::min(rest * kFullPerCut / group_bytes, useful);
    blocks.full = Clamped(full);
    if (window_bytes > 0) blocks.window = Clamped(fixed + full * per_cut / kFullPerCut);
  } else if (window_bytes > 0) {
    blocks.window = Clamped(fixed + std::max<int64_t>(0, rest) / window_bytes);
  }
  blocks.bytes = blocks.full * full_bytes + blocks.window * window_bytes;
  blocks.max_tokens = int64_t{blocks.full} * kBlockTokens;
  const bool holds_one = (full_bytes == 0 || blocks.max_tokens >= kLeastTokens) && rest >= 0;
  if (holds_one) return blocks;
  const int64_t least =
      BlocksOf(kLeastTokens) * (full_bytes + window_bytes) + (2 * per_cut + 1) * window_bytes;
  return Error(Code::kExhausted,
               "%.1f MiB for KV do not hold one sequence of %d tokens; that takes %.1f MiB",
               static_cast<double>(budget.bytes) / (1 << 20), kLeastTokens,
               static_cast<double>(least) / (1 << 20));
}

}  // namespace hearth
