// SPDX-License-Identifier: Apache-2.0
#include "backend/plan_check.h"

#include <algorithm>

namespace hearth {
namespace {

Status CheckCopy(const BlockCopy& copy, const KvLayout& kv) {
  if (copy.group < 0 || copy.group >= kv.num_groups()) {
    return Error(Code::kInvalid, "KV group %d of %d", copy.group, kv.num_groups());
  }
  const KvGroupLayout& layout = kv.group(copy.group);
  const auto index = static_cast<int>(copy.block);
  const size_t size = copy.to_host.size() + copy.from_host.size();
  const bool is_one_way = copy.to_host.empty() || copy.from_host.empty();
  if (index >= 0 && index < layout.num_blocks && is_one_way &&
      static_cast<int64_t>(size) == layout.block_bytes) {
    return Status();
  }
  return Error(Code::kInvalid, "a copy of block %d of %zu bytes; there are %d of %lld", index, size,
               layout.num_blocks, static_cast<long long>(layout.block_bytes));
}

Status CheckTable(std::span<const BlockId> table, const KvGroupLayout& layout, int64_t begin,
                  int64_t end, int block_tokens) {
  for (int64_t i = begin / block_tokens; i * block_tokens < end; ++i) {
    const int id = static_cast<size_t>(i) < table.size()
                       ? static_cast<int>(table[static_cast<size_t>(i)])
                       : -1;
    if (id >= 0 && id < layout.num_blocks) continue;
    return Error(Code::kInvalid, "table entry %lld is block %d; there are %d",
                 static_cast<long long>(i), id, layout.num_blocks);
  }
  return Status();
}

Status CheckSlice(const StepPlan& plan, const PlanLimits& limits, const SeqSlice& slice, int next,
                  int rows) {
  if (slice.first != next || slice.count < 1 || slice.num_computed < 0 || slice.num_rows < 0 ||
      slice.num_rows > slice.count || slice.first_row != rows) {
    return Error(Code::kInvalid, "the slice at token %d is malformed", next);
  }
  if (slice.num_pooled < 0 || slice.num_pooled > slice.count ||
      (slice.num_pooled > 0 &&
       (limits.hidden_size == 0 || slice.pool.size() != static_cast<size_t>(limits.hidden_size)))) {
    return Error(Code::kInvalid, "the slice at token %d pools %d tokens into %zu numbers", next,
                 slice.num_pooled, slice.pool.size());
  }
  const int64_t end = int64_t{slice.num_computed} + slice.count;
  if (end > limits.max_context ||
      slice.first + slice.count > static_cast<int>(plan.tokens.size())) {
    return Error(Code::kInvalid, "the slice at token %d ends at position %lld of %d", next,
                 static_cast<long long>(end), limits.max_context);
  }
  if (slice.tables.size() != limits.kv.groups.size()) {
    return Error(Code::kInvalid, "%zu block tables for %d groups", slice.tables.size(),
                 limits.kv.num_groups());
  }
  for (size_t i = 0; i < limits.kv.groups.size(); ++i) {
    const int window = limits.kv.groups[i].window;
    const int64_t visible =
        window == 0 ? 0 : std::max<int64_t>(0, int64_t{slice.num_computed} - window + 1);
    HEARTH_TRY(
        CheckTable(slice.tables[i], limits.kv.groups[i], visible, end, limits.kv.block_tokens));
  }
  return Status();
}

}  // namespace

Status CheckPlan(const StepPlan& plan, const PlanLimits& limits) {
  for (const BlockCopy& copy : plan.copies) HEARTH_TRY(CheckCopy(copy, limits.kv));
  if (plan.tokens.size() > static_cast<size_t>(limits.max_step_tokens)) {
    return Error(Code::kInvalid, "a step of %zu tokens, the limit is %d", plan.tokens.size(),
                 limits.max_step_tokens);
  }
  if (plan.num_rows < 0) return Error(Code::kInvalid, "%d rows", plan.num_rows);
  for (const Token token : plan.tokens) {
    if (token >= 0 && token < limits.vocab_size) continue;
    return Error(Code::kInvalid, "token %d is outside the vocabulary of %d tokens", token,
                 limits.vocab_size);
  }
  int next = 0, rows = 0;
  for (const SeqSlice& slice : plan.slices) {
    HEARTH_TRY(CheckSlice(plan, limits, slice, next, rows));
    next += slice.count;
    rows += slice.num_rows;
  }
  if (next != static_cast<int>(plan.tokens.size()) || rows != plan.num_rows) {
    return Error(Code::kInvalid, "slices cover %d of %zu tokens and %d of %d rows", next,
                 plan.tokens.size(), rows, plan.num_rows);
  }
  return Status();
}

}  // namespace hearth
