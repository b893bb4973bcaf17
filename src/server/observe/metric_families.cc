// SPDX-License-Identifier: Apache-2.0
#include "server/observe/metric_families.h"

#include <algorithm>
#include <map>

namespace hearth {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void MetricFamilies::Add(const char* name, MetricType type, const char* help,
                         const std::vector<LabelledValue>& values) {
  MetricFamily family{name, help, type, {}};
  for (const LabelledValue& each : values) {
    ClientMetric metric;
    for (const auto& [label, value] : each.labels) metric.label.push_back({label, value});
    if (type == MetricType::Counter) metric.counter.value = each.value;
    if (type == MetricType::Gauge) metric.gauge.value = each.value;
    family.metric.push_back(std::move(metric));
  }
  all_.push_back(std::move(family));
}

void MetricFamilies::Theirs(const char* name, MetricType type, const char* help,
                            const std::vector<LabelledValue>& values) {
  if (!with_theirs_) return;
  std::vector<LabelledValue> named = values;
  for (LabelledValue& each : named) each.labels.emplace_back("model_name", model_);
  Add(name, type, help, named);
}

void MetricFamilies::Counters(const char* name, const char* help,
                              const std::vector<LabelledValue>& values, const TheirNames& theirs) {
  Add(name, MetricType::Counter, help, values);
  for (const char* other : theirs) Theirs(other, MetricType::Counter, help, values);
}

void MetricFamilies::Gauges(const char* name, const char* help,
                            const std::vector<LabelledValue>& values) {
  Add(name, MetricType::Gauge, help, values);
}

void MetricFamilies::Counter(const char* name, const char* help, double value,
                             const TheirNames& theirs) {
  Counters(name, help, {{{}, value}}, theirs);
}

void MetricFamilies::Gauge(const char* name, const char* help, double value,
                           const TheirNames& theirs) {
  Gauges(name, help, {{{}, value}});
  for (const char* other : theirs) Theirs(other, MetricType::Gauge, help, {{{}, value}});
}

void MetricFamilies::Histogram(const char* name, const char* help,
                               const ClientMetric::Histogram& histogram, const TheirNames& theirs) {
  ClientMetric metric;
  metric.histogram = histogram;
  all_.push_back({name, help, MetricType::Histogram, {metric}});
  if (!with_theirs_) return;
  metric.label.push_back({"model_name", model_});
  for (const char* other : theirs) all_.push_back({other, help, MetricType::Histogram, {metric}});
}

namespace {

double UsedShare(const KvCounts& counts) {
  return counts.total == 0 ? 0.0 : static_cast<double>(counts.held + counts.pinned) / counts.total;
}

void AddBlocks(const EngineSnapshot& snapshot, MetricFamilies& out) {
  std::vector<LabelledValue> blocks, capacity, usage;
  double most_used = 0;
  for (const auto& [group, window, block_bytes, counts] : snapshot.kv) {
    const std::pair<const char*, int> states[] = {{"free", counts.free},
                                                  {"held", counts.held},
                                                  {"cached", counts.cached},
                                                  {"pinned", counts.pinned}};
    for (const auto& [state, value] : states) {
      blocks.push_back({{{"group", group}, {"state", state}}, static_cast<double>(value)});
    }
    capacity.push_back({{{"group", group}}, static_cast<double>(counts.total)});
    usage.push_back({{{"group", group}}, UsedShare(counts)});
    most_used = std::max(most_used, UsedShare(counts));
  }
  out.Gauges("hearth_kv_blocks", "Blocks of K and V by group of layers and state.", blocks);
  out.Gauges("hearth_kv_capacity_blocks", "Blocks there are.", capacity);
  out.Gauges("hearth_kv_used_ratio", "Share of blocks that running sequences hold.", usage);
  const std::vector<LabelledValue> used{{{}, most_used}};
  for (const char* name : {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}) {
    out.Theirs(name, MetricType::Gauge, "Share of KV blocks in use, 0 to 1.", used);
  }
  out.Theirs(
      "vllm:cache_config_info", MetricType::Gauge, "Always 1; the labels say the shape.",
      {{{{"block_size", std::to_string(snapshot.block_tokens)},
         {"num_gpu_blocks", std::to_string(snapshot.kv.empty() ? 0 : snapshot.kv[0].counts.total)},
         {"enable_prefix_caching", "True"}},
        1}});
}

void AddFinished(const EngineSnapshot& snapshot, MetricFamilies& out) {
  std::vector<LabelledValue> ours;
  std::map<std::string, double> theirs{{"stop", 0}, {"length", 0}, {"abort", 0}, {"error", 0}};
  for (size_t i = 1; i < snapshot.num_finished.size(); ++i) {
    const auto finish = static_cast<Finish>(i);
    const auto count = static_cast<double>(snapshot.num_finished[i]);
    ours.push_back({{{"reason", NameOf(finish)}}, count});
    const char* reason = finish == Finish::kStop                               ? "stop"
                         : finish == Finish::kLength                           ? "length"
                         : finish == Finish::kError || finish == Finish::kMask ? "error"
                                                                               : "abort";
    theirs[reason] += count;
  }
  out.Counters("hearth_requests_finished_total", "Requests that ended, by how.", ours);
  std::vector<LabelledValue> successes;
  for (const auto& [reason, count] : theirs) {
    successes.push_back({{{"finished_reason", reason}}, count});
  }
  out.Theirs("vllm:request_success_total", MetricType::Counter, "Requests that ended, by how.",
             successes);
}

void AddWork(const EngineSnapshot& snapshot, MetricFamilies& out) {
  const auto count = [&](const char* name, const char* help, auto value,
                         const MetricFamilies::TheirNames& theirs = {}) {
    out.Counter(name, help, static_cast<double>(value), theirs);
  };
  const SchedulerTotals& totals = snapshot.totals;
  count("hearth_steps_total", "Forward passes.", totals.num_steps);
  count("hearth_breaks_total", "Forward passes made while another one was left for them.",
        totals.num_breaks);
  count("hearth_preemptions_total", "Sequences that had to be preempted.", totals.num_preemptions,
        {"vllm:num_preemptions_total"});
  count("hearth_prefill_tokens_total", "Prompt tokens computed.", totals.prefill_tokens);
  count("hearth_decode_tokens_total", "Tokens computed one at a time.", totals.decode_tokens);
  count("hearth_recomputed_tokens_total", "Tokens computed again after preemption.",
        totals.recomputed_tokens);
  count("hearth_prompt_tokens_total", "Tokens of the prompts of requests that ended.",
        snapshot.prompt_tokens, {"vllm:prompt_tokens_total", "vllm:prefix_cache_queries_total"});
  count("hearth_cached_tokens_total", "Of those prompts, tokens found in the cache.",
        snapshot.cached_tokens, {"vllm:prefix_cache_hits_total"});
  count("hearth_requests_admitted_total", "Requests let in.", snapshot.num_admitted);
  count("hearth_requests_refused_total", "Requests the engine did not let in.",
        snapshot.num_refused);
  count("hearth_backend_failures_total", "Steps that failed.", snapshot.num_backend_failures);
  count("hearth_stalls_total", "Times that steps stopped although there was work.",
        snapshot.num_stalls);
}

}  // namespace

void AddEngine(const EngineSnapshot& snapshot, MetricFamilies& out) {
  const SchedulerLoad& load = snapshot.load;
  const auto gauge = [&](const char* name, const char* help, auto value,
                         const MetricFamilies::TheirNames& theirs = {}) {
    out.Gauge(name, help, static_cast<double>(value), theirs);
  };
  gauge("hearth_requests_running", "Sequences in the batch.", load.num_running,
        {"vllm:num_requests_running"});
  gauge("hearth_requests_waiting", "Requests that wait for their turn.", load.num_waiting,
        {"vllm:num_requests_waiting"});
  gauge("hearth_requests_paused", "Sequences whose readers are behind.", load.num_paused);
  gauge("hearth_waiting_tokens", "Prompt tokens that wait.", load.waiting_tokens);
  gauge("hearth_backlog_tokens", "Prompt tokens of running sequences to compute.",
        load.backlog_tokens);
  gauge("hearth_predicted_wait_seconds",
        "Until the first token of a short prompt that came now, by the present rates.",
        snapshot.wait_s);
  gauge("hearth_ready", "1 while requests are taken and steps progress.",
        !snapshot.is_draining && !snapshot.is_stalled);
  gauge("hearth_stalled", "1 while steps have stopped although there is work.",
        snapshot.is_stalled);
  gauge("hearth_draining", "1 while the server goes away.", snapshot.is_draining);
  gauge("hearth_prefill_tokens_per_second", "Over the last seconds.",
        snapshot.prefill_tokens_per_s);
  gauge("hearth_decode_tokens_per_second", "Over the last seconds.", snapshot.decode_tokens_per_s);
  gauge("hearth_step_own_seconds", "Mean time of a step beside the backend's.",
        snapshot.steps.mean_own_us * 1e-6);
  // Endpoint pickers look for it, and complain in their logs where it is missing.
  out.Theirs(
      "vllm:lora_requests_info", MetricType::Gauge, "Always 1; there are no adapters.",
      {{{{"max_lora", "0"}, {"running_lora_adapters", ""}, {"waiting_lora_adapters", ""}}, 1}});
  AddBlocks(snapshot, out);
  AddFinished(snapshot, out);
  AddWork(snapshot, out);
}

}  // namespace hearth
