// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_backend.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace hearth {
namespace {

constexpr int64_t kCellBytes = sizeof(uint64_t) + 2 * sizeof(int32_t);

}  // namespace

SimBackend::SimBackend(const KvLayout& layout, int vocab, uint64_t seed, SimWorld& world)
    : layout_(layout), world_(world) {
  model_.vocab = vocab;
  model_.seed = seed;
  for (KvGroupLayout& of : layout_.groups) {
    of.block_bytes = layout.block_tokens * kCellBytes + static_cast<int64_t>(sizeof(uint64_t));
    model_.windows.push_back(of.window);
    Group& group = groups_.emplace_back();
    group.cells.resize(static_cast<size_t>(of.num_blocks) *
                       static_cast<size_t>(layout.block_tokens));
    group.salts.resize(static_cast<size_t>(of.num_blocks));
  }
}

void SimBackend::Fault(const SeqSlice& slice, int position, const char* what) {
  if (!failure_.empty()) return;
  failure_ = Printf("sequence %llu at position %d: %s", static_cast<unsigned long long>(slice.seq),
                    position, what);
}

bool SimBackend::CheckSlice(const SeqSlice& slice, const StepPlan& plan) {
  const int end = slice.num_computed + slice.count;
  if (slice.count < 1 || slice.num_computed < 0) Fault(slice, end, "an empty slice");
  if (slice.first + slice.count > static_cast<int>(plan.tokens.size())) {
    Fault(slice, end, "a slice beyond the step's tokens");
  }
  if (slice.tables.size() != groups_.size()) Fault(slice, end, "a table for every group is due");
  for (const BlockTable& table : slice.tables) {
    if (static_cast<int>(table.size()) * layout_.block_tokens < end) {
      Fault(slice, end, "a table is too short");
    }
  }
  if (slice.num_rows > slice.count || slice.first_row + slice.num_rows > plan.num_rows) {
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
    if (slice.num_rows > 0 && slice.first_row != rows) Fault(slice, 0, "rows overlap");
    tokens += slice.count;
    rows += slice.num_rows;
    seen.push_back(slice.seq);
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
    Fault(plan.slices.front(), 0, "some sequence is in the step twice");
  }
  if (plan.slices.empty() || tokens != static_cast<int>(plan.tokens.size()) ||
      rows != plan.num_rows || num_logits < static_cast<size_t>(rows * model_.vocab)) {
    if (failure_.empty()) failure_ = "a plan whose counts do not add up";
  }
  return failure_.empty();
}

int SimBackend::BlockAt(int group, const SeqSlice& slice, int position) const {
  const BlockTable& table = slice.tables[static_cast<size_t>(group)];
  return static_cast<int>(table[static_cast<size_t>(position / layout_.block_tokens)]);
}

SimBackend::Cell* SimBackend::At(int group, const SeqSlice& slice, int position) {
  const int block = BlockAt(group, slice, position), block_tokens = layout_.block_tokens;
  if (block < 0 || block >= layout_.group(group).num_blocks) {
    Fault(slice, position, "its table has no block where the step needs one");
    return nullptr;
  }
  return &groups_[static_cast<size_t>(group)]
              .cells[static_cast<size_t>(block * block_tokens + position % block_tokens)];
}

// All contexts are read before anything is written: hardware promises no order between slices.
void SimBackend::ReadContext(const SeqSlice& slice, Context& context) {
  context.seen.resize(groups_.size());
  context.sum = context.full = 0;
  context.is_bad = false;
  const uint64_t salt = world_.SaltOf(slice.seq);
  for (int group = 0; group < layout_.num_groups(); ++group) {
    std::vector<uint64_t>& seen = context.seen[static_cast<size_t>(group)];
    seen.clear();
    const int window = layout_.group(group).window;
    for (int p = window == 0 ? 0 : std::max(0, slice.num_computed - window + 1);
         p < slice.num_computed && failure_.empty(); ++p) {
      const Cell* cell = At(group, slice, p);
      if (cell == nullptr) return;
      const auto block = static_cast<size_t>(BlockAt(group, slice, p));
      if (cell->position != p) Fault(slice, p, "the block holds another position, or was reused");
      if (groups_[static_cast<size_t>(group)].salts[block] != salt) {
        Fault(slice, p, "the block is another salt's");
      }
      context.is_bad = context.is_bad || cell->is_bad;
      if (window > 0) seen.push_back(cell->value);
      if (window == 0) context.full += context.sum += cell->value;
    }
  }
}

void SimBackend::Write(int group, const SeqSlice& slice, int position, uint64_t value,
                       bool is_bad) {
  Cell* cell = At(group, slice, position);
  if (cell == nullptr) return;
  if (position % layout_.block_tokens == 0) {
    std::fill_n(cell, layout_.block_tokens, Cell{});
    groups_[static_cast<size_t>(group)]
        .salts[static_cast<size_t>(BlockAt(group, slice, position))] = world_.SaltOf(slice.seq);
  }
  *cell = {value, position, is_bad};
}

void SimBackend::RunSlice(const SeqSlice& slice, const StepPlan& plan, Context& context,
                          std::span<float> logits) {
  for (int i = 0; i < slice.count && failure_.empty(); ++i) {
    const int p = slice.num_computed + i;
    const Token token = plan.tokens[static_cast<size_t>(slice.first + i)];
    if (token < 0 || token >= model_.vocab) Fault(slice, p, "a token beyond the vocabulary");
    sums_.clear();
    for (size_t group = 0; group < groups_.size(); ++group) {
      const int window = model_.windows[group];
      sums_.push_back(window == 0 ? context.full
                                  : SimModel::WindowSum(window, context.seen[group]));
    }
    const uint64_t value = model_.Cell(token, p, sums_);
    context.is_bad = context.is_bad || world_.GoesBad(slice.seq, p);
    context.full += context.sum += value;
    for (int group = 0; group < layout_.num_groups(); ++group) {
      if (layout_.group(group).window > 0) {
        context.seen[static_cast<size_t>(group)].push_back(value);
      }
      Write(group, slice, p, value, context.is_bad);
    }
    const int row = i - (slice.count - slice.num_rows);
    if (row < 0) continue;
    const auto vocab = static_cast<size_t>(model_.vocab);
    const std::span<float> out =
        logits.subspan(static_cast<size_t>(slice.first_row + row) * vocab, vocab);
    model_.Logits(value, token, out);
    if (context.is_bad) std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  }
}

// A block's bytes are its cells and whose it is.
Status SimBackend::Copy(const BlockCopy& copy) {
  HEARTH_TRY(world_.OnCopy());
  Group& group = groups_[static_cast<size_t>(copy.group)];
  const auto block = static_cast<size_t>(copy.block);
  if (block >= group.salts.size()) {
    failure_ = "a copy of a block that is not there";
    return Error(Code::kInvalid, "%s", failure_.c_str());
  }
  const auto count = static_cast<size_t>(layout_.block_tokens);
  std::byte* out = copy.to_host.data();
  const std::byte* in = copy.from_host.data();
  const auto move = [&](auto& value) {
    if (out != nullptr) std::memcpy(out, &value, sizeof(value)), out += sizeof(value);
    if (in != nullptr) std::memcpy(&value, in, sizeof(value)), in += sizeof(value);
  };
  move(group.salts[block]);
  for (size_t i = block * count; i < (block + 1) * count; ++i) {
    Cell& cell = group.cells[i];
    auto is_bad = static_cast<int32_t>(cell.is_bad);
    move(cell.value), move(cell.position), move(is_bad);
    cell.is_bad = is_bad != 0;
  }
  return Status();
}

// Only time passes: what a step reads and writes it does at its end, when anything that its break
// did to its blocks is noticed.
Result<bool> SimBackend::ComputeLayers(const StepPlan& plan, const WantsBreak& wants_break) {
  if (steps_.empty() || steps_.back().plan != &plan) {
    steps_.push_back({&plan, world_.OnStep(plan), 0});
  }
  UnderWay& step = steps_.back();
  const bool in_break = steps_.size() > 1;
  while (step.layer < kLayers) {
    const int64_t us = step.course.us;
    world_.Pass(us * (step.layer + 1) / kLayers - us * step.layer / kLayers);
    if (++step.layer < kLayers && !in_break && wants_break()) return false;
  }
  return true;
}

Status SimBackend::Compute(const StepPlan& plan, std::span<float> logits) {
  const Status status = std::move(steps_.back().course.status);
  steps_.pop_back();
  if (!CheckPlan(plan, logits.size())) return Error(Code::kInvalid, "%s", failure_.c_str());
  contexts_.resize(std::max(contexts_.size(), plan.slices.size()));
  for (size_t i = 0; i < plan.slices.size(); ++i) ReadContext(plan.slices[i], contexts_[i]);
  for (size_t i = 0; i < plan.slices.size() && failure_.empty(); ++i) {
    if (!status.ok()) contexts_[i].is_bad = true;
    RunSlice(plan.slices[i], plan, contexts_[i], logits);
  }
  // What a failed step left in the logits looks like any other numbers.
  if (!status.ok()) std::fill(logits.begin(), logits.end(), 0.5f);
  return status;
}

}  // namespace hearth
