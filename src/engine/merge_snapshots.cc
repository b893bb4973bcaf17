// SPDX-License-Identifier: Apache-2.0
#include "engine/merge_snapshots.h"

#include <algorithm>

namespace hearth {
namespace {

void AddTotals(SchedulerTotals& sum, const SchedulerTotals& one) {
  sum.num_steps += one.num_steps;
  sum.num_preemptions += one.num_preemptions;
  sum.prefill_tokens += one.prefill_tokens;
  sum.decode_tokens += one.decode_tokens;
  sum.cached_tokens += one.cached_tokens;
  sum.recomputed_tokens += one.recomputed_tokens;
  sum.loaded_tokens += one.loaded_tokens;
  sum.drafted_tokens += one.drafted_tokens;
  sum.accepted_tokens += one.accepted_tokens;
}

void AddLoad(SchedulerLoad& sum, const SchedulerLoad& one) {
  sum.num_waiting += one.num_waiting;
  sum.num_running += one.num_running;
  sum.num_paused += one.num_paused;
  sum.waiting_tokens += one.waiting_tokens;
  sum.backlog_tokens += one.backlog_tokens;
  sum.is_full = sum.is_full || one.is_full;
}

void AddLimits(EngineLimits& sum, const EngineLimits& one) {
  sum.max_running += one.max_running;
  sum.max_waiting += one.max_waiting;
  sum.max_waiting_tokens += one.max_waiting_tokens;
  sum.itl_target_us = std::max(sum.itl_target_us, one.itl_target_us);
}

void AddTimes(StepTimes& sum, const StepTimes& one) {
  sum.last_us = std::max(sum.last_us, one.last_us);
  sum.p50_us = std::max(sum.p50_us, one.p50_us);
  sum.p99_us = std::max(sum.p99_us, one.p99_us);
  sum.max_us = std::max(sum.max_us, one.max_us);
  sum.mean_own_us = std::max(sum.mean_own_us, one.mean_own_us);
  sum.mean_us = std::max(sum.mean_us, one.mean_us);
  sum.mean_tokens = std::max(sum.mean_tokens, one.mean_tokens);
}

}  // namespace

void AddCounts(EngineSnapshot& sum, const EngineSnapshot& one) {
  AddTotals(sum.totals, one.totals);
  for (size_t i = 0; i < sum.step_histogram.counts.size(); ++i) {
    sum.step_histogram.counts[i] += one.step_histogram.counts[i];
  }
  sum.step_histogram.sum_us += one.step_histogram.sum_us;
  sum.masks.num_steps += one.masks.num_steps;
  sum.masks.num_fills += one.masks.num_fills;
  sum.masks.num_delayed += one.masks.num_delayed;
  sum.masks.delayed_us += one.masks.delayed_us;
  for (size_t i = 0; i < sum.num_finished.size(); ++i) sum.num_finished[i] += one.num_finished[i];
  sum.num_stalls += one.num_stalls;
  sum.num_admitted += one.num_admitted;
  sum.num_refused += one.num_refused;
  sum.num_backend_failures += one.num_backend_failures;
  sum.prompt_tokens += one.prompt_tokens;
  sum.cached_tokens += one.cached_tokens;
  sum.generated_tokens += one.generated_tokens;
  sum.waited_us += one.waited_us;
  sum.ttft_us += one.ttft_us;
  sum.num_first_tokens += one.num_first_tokens;
}

void AddSnapshot(EngineSnapshot& sum, const EngineSnapshot& one, const std::string& name) {
  AddCounts(sum, one);
  AddLoad(sum.load, one.load);
  AddLimits(sum.limits, one.limits);
  AddTimes(sum.steps, one.steps);
  sum.is_stalled = sum.is_stalled || one.is_stalled;
  sum.block_tokens = std::max(sum.block_tokens, one.block_tokens);
  for (KvGroupState group : one.kv) {
    group.name = name + "/" + group.name;
    sum.kv.push_back(std::move(group));
  }
  sum.masks.median_fill_us = std::max(sum.masks.median_fill_us, one.masks.median_fill_us);
  sum.prefill_tokens_per_s += one.prefill_tokens_per_s;
  sum.wait_s = std::max(sum.wait_s, one.wait_s);
  sum.decode_tokens_per_s += one.decode_tokens_per_s;
  sum.rows.insert(sum.rows.end(), one.rows.begin(), one.rows.end());
}

}  // namespace hearth
