// SPDX-License-Identifier: Apache-2.0
#include "app/lone_sequence.h"

#include <algorithm>

namespace hearth {
Result<LoneSequence> LoneSequence::Make(const Model& model, const BackendFlags& flags,
                                        int max_tokens) {
  HEARTH_ASSIGN(BackendOptions options, OptionsFrom(flags));
  // Every row of a step may be asked for.
  options.max_rows = std::min(max_tokens, options.max_step_tokens);
  HEARTH_ASSIGN(BackendPlan plan, PlanBackend(model, options));
  const auto num_blocks = static_cast<int>(plan.kv.BlocksUpTo(max_tokens));
  SetBlocks(plan.kv, num_blocks);
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenBackend(model, plan));
  BlockTable table;
  for (int i = 0; i < num_blocks; ++i) table.push_back(static_cast<BlockId>(i));
  return LoneSequence(std::move(backend), std::vector<BlockTable>(plan.kv.groups.size(), table));
}

Status LoneSequence::Append(std::span<const Token> tokens, int chunk, bool every_row,
                            const Emit& emit) {
  while (!tokens.empty()) {
    const auto count = std::min(tokens.size(), static_cast<size_t>(chunk));
    StepPlan plan;
    plan.tokens.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    SeqSlice slice;
    slice.count = static_cast<int>(count);
    slice.num_computed = num_computed_;
    slice.tables = tables_;
    const bool last = count == tokens.size();
    slice.num_rows = every_row ? slice.count : last ? 1 : 0;
    plan.num_rows = slice.num_rows;
    plan.slices.push_back(slice);
    HEARTH_ASSIGN(const std::span<const RowResult> rows, RunStep(*backend_, plan));
    num_computed_ += slice.count;
    for (const RowResult& row : rows) emit(row.logits);
    tokens = tokens.subspan(count);
  }
  return Status();
}

}  // namespace hearth
