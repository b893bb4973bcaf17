// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_backend.h"

#include <algorithm>
#include <limits>

namespace hearth {

SimBackend::SimBackend(const KvLayout& layout, int vocab, uint64_t seed, SimWorld& world)
    : layout_(layout), world_(world) {
  model_.vocab = vocab;
  model_.seed = seed;
  model_.has_full = layout.full.block_bytes > 0;
  model_.window = layout.window.block_bytes > 0 ? layout.window.window : 0;
  const auto make = [](const KvGroupLayout& of, Group& group) {
    if (of.block_bytes == 0) return;
    group.cells.resize(static_cast<size_t>(of.num_blocks) * kBlockTokens);
    group.salts.resize(static_cast<size_t>(of.num_blocks));
  };
  make(layout.full, full_);
  make(layout.window, window_);
}

Status SimBackend::ReadBlock(KvGroup, BlockId, std::span<std::byte>) {
  return Error(Code::kUnsupported, "the simulation has no tiers");
}
Status SimBackend::WriteBlock(KvGroup, BlockId, std::span<const std::byte>) {
  return Error(Code::kUnsupported, "the simulation has no tiers");
}

void SimBackend::Fault(const SeqSlice& slice, int position, const char* what) {
  if (!failure_.empty()) return;
  failure_ = Printf("sequence %llu at position %d: %s", static_cast<unsigned long long>(slice.seq),
                    position, what);
}

bool SimBackend::CheckSlice(const SeqSlice& slice, const StepPlan& plan) {
  const int end = slice.num_computed + slice.count;
  const auto covers = [end](std::span<const BlockId> table) {
    return static_cast<int>(table.size()) * kBlockTokens >= end;
  };
  if (slice.count < 1 || slice.num_computed < 0) Fault(slice, end, "an empty slice");
  if (slice.first + slice.count > static_cast<int>(plan.tokens.size())) {
    Fault(slice, end, "a slice beyond the step's tokens");
  }
  if (full_.exists() && !covers(slice.full)) Fault(slice, end, "the full table is too short");
  if (window_.exists() && !covers(slice.window)) Fault(slice, end, "the window table is too short");
  if (slice.num_logits > slice.count ||
      slice.logits_row + slice.num_logits > plan.num_logits_rows) {
    Fault(slice, end, "rows of logits that are not the slice's");
  }
  return failure_.empty();
}

bool SimBackend::CheckPlan(const StepPlan& plan, size_t num_logits) {
  int tokens = 0, rows = 0;
  std::vector<SeqId> seen;
  for (const SeqSlice& slice : plan.slices) {
    if (!CheckSlice(slice, plan)) return false;
    if (slice.first != tokens) Fault(slice, 0, "its tokens are not the next ones of the step");
    if (slice.num_logits > 0 && slice.logits_row != rows) Fault(slice, 0, "rows overlap");
    tokens += slice.count;
    rows += slice.num_logits;
    seen.push_back(slice.seq);
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
    Fault(plan.slices.front(), 0, "some sequence is in the step twice");
  }
  if (plan.slices.empty() || tokens != static_cast<int>(plan.tokens.size()) ||
      rows != plan.num_logits_rows || num_logits < static_cast<size_t>(rows * model_.vocab)) {
    if (failure_.empty()) failure_ = "a plan whose counts do not add up";
  }
  return failure_.empty();
}

SimBackend::Cell* SimBackend::At(Group& group, std::span<const BlockId> table, int position,
                                 const SeqSlice& slice) {
  const auto block = static_cast<int>(table[static_cast<size_t>(position / kBlockTokens)]);
  if (block < 0 || block >= static_cast<int>(group.salts.size())) {
    Fault(slice, position, "its table has no block where the step needs one");
    return nullptr;
  }
  return &group.cells[static_cast<size_t>(block * kBlockTokens + position % kBlockTokens)];
}

// All contexts are read before anything is written: hardware promises no order between slices.
void SimBackend::ReadContext(const SeqSlice& slice, Context& context) {
  context = {.sum = 0, .full = 0, .window = std::move(context.window), .is_bad = false};
  context.window.clear();
  const uint64_t salt = world_.SaltOf(slice.seq);
  const auto read = [&](Group& group, std::span<const BlockId> table, int p) -> uint64_t {
    const Cell* cell = At(group, table, p, slice);
    if (cell == nullptr) return 0;
    const auto block = static_cast<size_t>(table[static_cast<size_t>(p / kBlockTokens)]);
    if (cell->position != p) Fault(slice, p, "the block holds another position, or was reused");
    if (group.salts[block] != salt) Fault(slice, p, "the block is another salt's");
    context.is_bad = context.is_bad || cell->is_bad;
    return cell->value;
  };
  for (int p = 0; full_.exists() && p < slice.num_computed && failure_.empty(); ++p) {
    context.sum += read(full_, slice.full, p);
    context.full += context.sum;
  }
  if (!window_.exists()) return;
  for (int p = std::max(0, slice.num_computed - model_.window + 1);
       p < slice.num_computed && failure_.empty(); ++p) {
    context.window.push_back(read(window_, slice.window, p));
  }
}

void SimBackend::Write(Group& group, std::span<const BlockId> table, const SeqSlice& slice,
                       int position, uint64_t value, bool is_bad) {
  Cell* cell = At(group, table, position, slice);
  if (cell == nullptr) return;
  if (position % kBlockTokens == 0) {
    std::fill_n(cell, kBlockTokens, Cell{});
    group.salts[static_cast<size_t>(table[static_cast<size_t>(position / kBlockTokens)])] =
        world_.SaltOf(slice.seq);
  }
  *cell = {value, position, is_bad};
}

void SimBackend::RunSlice(const SeqSlice& slice, const StepPlan& plan, Context& context,
                          std::span<float> logits) {
  for (int i = 0; i < slice.count && failure_.empty(); ++i) {
    const int p = slice.num_computed + i;
    const Token token = plan.tokens[static_cast<size_t>(slice.first + i)];
    if (token < 0 || token >= model_.vocab) Fault(slice, p, "a token beyond the vocabulary");
    uint64_t window_sum = 0;
    const auto seen = static_cast<int>(context.window.size());
    for (int d = 1; d < model_.window && d <= seen; ++d) {
      window_sum += static_cast<uint64_t>(d) * context.window[static_cast<size_t>(seen - d)];
    }
    const uint64_t value = model_.Cell(token, p, full_.exists() ? context.full : 0, window_sum);
    context.is_bad = context.is_bad || world_.GoesBad(slice.seq, p);
    context.sum += value;
    context.full += context.sum;
    if (window_.exists()) {
      context.window.push_back(value);
      Write(window_, slice.window, slice, p, value, context.is_bad);
    }
    if (full_.exists()) Write(full_, slice.full, slice, p, value, context.is_bad);
    const int row = i - (slice.count - slice.num_logits);
    if (row < 0) continue;
    const auto vocab = static_cast<size_t>(model_.vocab);
    const std::span<float> out =
        logits.subspan(static_cast<size_t>(slice.logits_row + row) * vocab, vocab);
    model_.Logits(value, token, out);
    if (context.is_bad) std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  }
}

Status SimBackend::Run(const StepPlan& plan, std::span<float> logits) {
  if (!CheckPlan(plan, logits.size())) return Error(Code::kInvalid, "%s", failure_.c_str());
  contexts_.resize(std::max(contexts_.size(), plan.slices.size()));
  for (size_t i = 0; i < plan.slices.size(); ++i) ReadContext(plan.slices[i], contexts_[i]);
  const Status status = world_.OnStep(plan);
  for (size_t i = 0; i < plan.slices.size() && failure_.empty(); ++i) {
    if (!status.ok()) contexts_[i].is_bad = true;
    RunSlice(plan.slices[i], plan, contexts_[i], logits);
  }
  // What a failed step left in the logits looks like any other numbers.
  if (!status.ok()) std::fill(logits.begin(), logits.end(), 0.5f);
  return status;
}

}  // namespace hearth
