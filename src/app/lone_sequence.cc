// SPDX-License-Identifier: Apache-2.0
#include "app/lone_sequence.h"

#include <algorithm>

namespace hearth {
Result<LoneSequence> LoneSequence::Make(const Model& model, const CpuFlags& flags, int max_tokens) {
  CpuOptions options;
  HEARTH_TRY(FillFrom(flags, options));
  const KvLayout layout = CpuKvLayout(model.spec);
  const auto num_blocks = static_cast<int>(layout.BlocksUpTo(max_tokens));
  options.kv_blocks = {num_blocks};
  HEARTH_ASSIGN(std::unique_ptr<Backend> backend, OpenCpuBackend(model, options));
  BlockTable table;
  for (int i = 0; i < num_blocks; ++i) table.push_back(static_cast<BlockId>(i));
  return LoneSequence(std::move(backend), std::vector<BlockTable>(layout.groups.size(), table));
}

Status LoneSequence::Append(std::span<const Token> tokens, int chunk, bool every_row,
                            const Emit& emit) {
  const auto vocab = static_cast<size_t>(backend_->vocab_size());
  while (!tokens.empty()) {
    const auto count = std::min(tokens.size(), static_cast<size_t>(chunk));
    StepPlan plan;
    plan.tokens.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    SeqSlice slice;
    slice.count = static_cast<int>(count);
    slice.num_computed = num_computed_;
    slice.tables = tables_;
    const bool last = count == tokens.size();
    slice.num_logits = every_row ? slice.count : last ? 1 : 0;
    plan.num_logits_rows = slice.num_logits;
    plan.slices.push_back(slice);
    logits_.resize(static_cast<size_t>(slice.num_logits) * vocab);
    HEARTH_TRY(backend_->Run(plan, logits_));
    num_computed_ += slice.count;
    for (int i = 0; i < slice.num_logits; ++i) {
      emit(std::span(logits_).subspan(static_cast<size_t>(i) * vocab, vocab));
    }
    tokens = tokens.subspan(count);
  }
  return Status();
}

}  // namespace hearth
