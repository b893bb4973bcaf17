// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_budget.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace hearth {
namespace {

// A pool that holds less is of no use to anybody.
constexpr int kLeastTokens = 512;
// Window blocks before every 512th token are kept (KvPolicy::window_every), and before the end of
// every prompt and turn: as many again for turns of some 500 tokens, which is short.
constexpr int kTokensPerCheckpoint = 256;
// Of the budget, for the window blocks of running sequences. With gpt-oss one sequence holds 10 of
// them, as much as 160 tokens in the other layers: below some 6,000 tokens of pool 256 sequences
// could not run anyway.
constexpr int64_t kMostForRunning = 4;  // a quarter

int Clamped(int64_t blocks) {
  return static_cast<int>(std::min<int64_t>(blocks, std::numeric_limits<int32_t>::max() / 2));
}

// What one group with a window needs.
struct WindowNeed {
  int64_t per_checkpoint = 0;  // blocks that somebody needs to start at a checkpoint
  int64_t running = 0;         // blocks for what runs
};

// While it decodes, a sequence's window lies in at most one block more than it fills; a prompt's
// chunk is there besides, and at least one of the longest must fit.
WindowNeed NeedOf(const KvBudget& budget, const KvGroupLayout& group, int num_windows) {
  WindowNeed need;
  need.per_checkpoint = budget.layout.BlocksUpTo(group.window);
  const int64_t per_sequence = need.per_checkpoint + 1;
  const int64_t least = per_sequence + budget.layout.BlocksUpTo(kLeastTokens);
  const int64_t wanted =
      budget.max_sequences * per_sequence + budget.layout.BlocksUpTo(budget.max_step_tokens);
  const int64_t share = budget.bytes / kMostForRunning / num_windows / group.block_bytes;
  need.running = std::max(least, std::min(wanted, share));
  return need;
}

Status TooLittle(const KvBudget& budget) {
  const KvLayout& layout = budget.layout;
  int64_t least = 0;
  for (const KvGroupLayout& group : layout.groups) {
    const int64_t per_checkpoint = layout.BlocksUpTo(group.window);
    const int64_t besides = group.window > 0 ? 2 * per_checkpoint + 1 : 0;
    least += (layout.BlocksUpTo(kLeastTokens) + besides) * group.block_bytes;
  }
  return Error(
      Code::kExhausted,
      "a KV cache of %.1f MiB cannot hold one sequence of %d tokens, which needs %.1f MiB; "
      "raise --kv-memory",
      static_cast<double>(budget.bytes) / (1 << 20), kLeastTokens,
      static_cast<double>(least) / (1 << 20));
}

}  // namespace

Result<KvLayout> PlanKv(const KvBudget& budget) {
  KvLayout layout = budget.layout;
  const int num_windows = layout.num_groups() - layout.has_full();
  std::vector<WindowNeed> needs;  // of a group that sees everything: none
  int64_t rest = budget.bytes, checkpoint_bytes = 0;
  for (const KvGroupLayout& group : layout.groups) {
    needs.push_back(group.window > 0 ? NeedOf(budget, group, num_windows) : WindowNeed());
    rest -= needs.back().running * group.block_bytes;
    checkpoint_bytes += needs.back().per_checkpoint * group.block_bytes;
  }
  int64_t full = 0;
  const int64_t full_per_checkpoint = std::max(1, kTokensPerCheckpoint / layout.block_tokens);
  if (layout.has_full()) {
    // Every full block brings its share of checkpoints.
    const int64_t unit_bytes =
        full_per_checkpoint * layout.groups[0].block_bytes + checkpoint_bytes;
    const int64_t useful = layout.BlocksUpTo(budget.max_context) * budget.max_sequences;
    full = std::min(rest * full_per_checkpoint / unit_bytes, useful);
    layout.groups[0].num_blocks = Clamped(full);
  }
  for (size_t i = layout.has_full(); i < layout.groups.size(); ++i) {
    KvGroupLayout& group = layout.groups[i];
    const int64_t extra = layout.has_full()
                              ? full * needs[i].per_checkpoint / full_per_checkpoint
                              : std::max<int64_t>(0, rest) / num_windows / group.block_bytes;
    group.num_blocks = Clamped(needs[i].running + extra);
  }
  const bool holds_one = !layout.has_full() || layout.full_tokens() >= kLeastTokens;
  if (rest < 0 || !holds_one) return TooLittle(budget);
  return layout;
}

}  // namespace hearth
