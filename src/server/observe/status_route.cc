// SPDX-License-Identifier: Apache-2.0
#include "server/observe/status_route.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/observe/account_metrics.h"
#include "server/observe/tier_families.h"

namespace hearth {
namespace {

double Ms(int64_t us) { return static_cast<double>(us) / 1000; }

const char* StateOf(const EngineSnapshot& snapshot) {
  if (snapshot.is_stalled) return "stalled";
  return snapshot.is_draining ? "draining" : "ready";
}

const char* StateOf(const SequenceRow& row) {
  switch (row.state) {
    case SequenceRow::State::kWaiting:
      return row.num_preempted > 0 ? "preempted" : "waiting";
    case SequenceRow::State::kPrefill:
      return "prefill";
    case SequenceRow::State::kDecode:
      return "decode";
    case SequenceRow::State::kLoading:
      return "loading";
    case SequenceRow::State::kPaused:
      break;
  }
  return "paused";
}

Json RowAsJson(const SequenceRow& row, const SequenceName& name, int64_t late_us) {
  // Between the first token and the last there is one gap less than tokens.
  const double per_s =
      row.saying_us > 0 ? (row.num_generated - 1) / (static_cast<double>(row.saying_us) * 1e-6) : 0;
  return JsonObject{{"sequence", static_cast<uint64_t>(row.id)},
                    {"request_id", name.request_id},
                    {"key", name.key_id},
                    {"dialect", name.dialect},
                    {"state", StateOf(row)},
                    {"priority", NameOf(row.priority)},
                    {"age_ms", Ms(row.age_us + late_us)},
                    {"waited_ms", Ms(row.waited_us)},
                    {"prompt_tokens", row.num_prompt},
                    {"cached_tokens", row.num_cached},
                    {"computed_tokens", row.num_computed},
                    {"generated_tokens", row.num_generated},
                    {"tokens_per_s", per_s},
                    {"preempted", row.num_preempted}};
}

Json RequestsAsJson(const EngineSnapshot& snapshot) {
  const SchedulerLoad& load = snapshot.load;
  int num_preempted = 0;
  for (const SequenceRow& row : snapshot.rows) {
    num_preempted += row.state == SequenceRow::State::kWaiting && row.num_preempted > 0;
  }
  JsonObject finished;
  for (size_t i = 1; i < snapshot.num_finished.size(); ++i) {
    finished.push_back({NameOf(static_cast<Finish>(i)), snapshot.num_finished[i]});
  }
  return JsonObject{{"running", load.num_running},
                    {"max_running", snapshot.limits.max_running},
                    {"paused", load.num_paused},
                    {"waiting", load.num_waiting},
                    {"max_waiting", snapshot.limits.max_waiting},
                    {"waiting_tokens", load.waiting_tokens},
                    {"max_waiting_tokens", snapshot.limits.max_waiting_tokens},
                    {"backlog_tokens", load.backlog_tokens},
                    {"preempted", num_preempted},
                    {"preemptions", snapshot.totals.num_preemptions},
                    {"admitted", snapshot.num_admitted},
                    {"refused", snapshot.num_refused},
                    {"finished", std::move(finished)}};
}

Json StepsAsJson(const EngineSnapshot& snapshot) {
  const StepTimes& steps = snapshot.steps;
  return JsonObject{{"count", snapshot.totals.num_steps},
                    {"breaks", snapshot.totals.num_breaks},
                    {"mean_ms", steps.mean_us / 1000},
                    {"mean_tokens", steps.mean_tokens},
                    {"p50_ms", Ms(steps.p50_us)},
                    {"p99_ms", Ms(steps.p99_us)},
                    {"max_ms", Ms(steps.max_us)},
                    {"own_ms", steps.mean_own_us / 1000},
                    {"itl_target_ms", Ms(snapshot.limits.itl_target_us)},
                    {"failures", snapshot.num_backend_failures}};
}

Json BlocksAsJson(const std::string& group, const KvCounts& counts, int64_t block_bytes) {
  return JsonObject{{"group", group},
                    {"total", counts.total},
                    {"held", counts.held},
                    {"cached", counts.cached},
                    {"free", counts.free},
                    {"pinned", counts.pinned},
                    {"block_bytes", block_bytes}};
}

// What was done since the start.
Json TokensAsJson(const EngineSnapshot& snapshot) {
  const SchedulerTotals& totals = snapshot.totals;
  return JsonObject{{"prefill_per_s", snapshot.prefill_tokens_per_s},
                    {"decode_per_s", snapshot.decode_tokens_per_s},
                    {"prefill", totals.prefill_tokens},
                    {"decode", totals.decode_tokens},
                    {"recomputed", totals.recomputed_tokens},
                    {"prompt", snapshot.prompt_tokens},
                    {"cached", snapshot.cached_tokens},
                    {"drafted", totals.drafted_tokens},
                    {"accepted", totals.accepted_tokens}};
}

Json MasksAsJson(const MaskTotals& masks) {
  return JsonObject{
      {"steps", masks.num_steps},          {"fills", masks.num_fills},
      {"waited_steps", masks.num_delayed}, {"waited_ms", Ms(masks.delayed_us)},
      {"ahead", masks.num_ahead},          {"median_fill_ms", Ms(masks.median_fill_us)}};
}

JsonArray ListenersAsJson(const ServerMetrics& metrics) {
  JsonArray out;
  for (const auto& [name, counts] : metrics.listeners()) {
    out.push_back(JsonObject{{"listener", name},
                             {"connections", counts.connections_open},
                             {"connections_total", counts.connections_total},
                             {"connections_refused", counts.connections_refused},
                             {"requests", counts.requests_total},
                             {"refusals", counts.refusals_total}});
  }
  return out;
}

JsonArray EndsAsJson(const ServerMetrics& metrics) {
  std::vector<ServerMetrics::Ends> ends = metrics.ends();
  std::sort(ends.begin(), ends.end(),
            [](const auto& a, const auto& b) { return a.count > b.count; });
  JsonArray out;
  for (const ServerMetrics::Ends& end : ends) {
    out.push_back(JsonObject{{"status", end.status}, {"code", end.code}, {"count", end.count}});
  }
  return out;
}

JsonArray ModelsAsJson(const HostCounts& counts) {
  JsonArray out;
  for (const HostCounts::Model& each : counts.models) {
    out.push_back(JsonObject{{"model", each.name},
                             {"state", each.state},
                             {"users", each.num_users},
                             {"planned_bytes", each.planned_bytes},
                             {"loads", each.num_loads},
                             {"unloads", each.num_unloads},
                             {"taken", each.num_taken},
                             {"failures", each.num_failures}});
  }
  return out;
}

std::string LoadedNames(const HostCounts& counts) {
  std::string names;
  for (const HostCounts::Model& each : counts.models) {
    if (each.state == "loaded") names += (names.empty() ? "" : ", ") + each.name;
  }
  return names.empty() ? Printf("none of %zu models", counts.models.size()) : names;
}

}  // namespace

Json StatusAsJson(const EngineSnapshot& snapshot, const ServerMetrics& metrics,
                  const std::unordered_map<SeqId, SequenceName>& names, int64_t now_us) {
  const MetricFacts& facts = metrics.facts();
  const bool is_idle = snapshot.load.num_running + snapshot.load.num_waiting == 0;
  const int64_t late_us = is_idle ? 0 : std::max<int64_t>(0, now_us - snapshot.at_us);
  JsonArray groups;
  for (const auto& [name, window, block_bytes, counts] : snapshot.kv) {
    groups.push_back(BlocksAsJson(name, counts, block_bytes));
  }
  JsonArray rows;
  for (const SequenceRow& row : snapshot.rows) {
    const auto name = names.find(row.id);
    rows.push_back(RowAsJson(row, name == names.end() ? SequenceName() : name->second, late_us));
  }
  const std::optional<AccountCounts> accounts = metrics.account_counts();
  const auto models = metrics.models();
  JsonObject out{{"hearth", facts.version},
                 {"isa", facts.isa},
                 {"numerics", facts.numerics},
                 {"model", models ? LoadedNames(*models) : facts.model},
                 {"max_context", facts.max_context},
                 {"state", StateOf(snapshot)},
                 {"uptime_s", metrics.uptime_s()},
                 {"snapshot_age_ms", Ms(late_us)},
                 {"resident_bytes", ResidentBytes()},
                 {"worker", AsJson(facts.worker)},
                 {"requests", RequestsAsJson(snapshot)},
                 {"steps", StepsAsJson(snapshot)},
                 {"tokens", TokensAsJson(snapshot)},
                 {"kv", std::move(groups)},
                 {"tier", TierAsJson(snapshot)},
                 {"paging", PagingAsJson(metrics.paging())},
                 {"masks", MasksAsJson(snapshot.masks)},
                 {"listeners", ListenersAsJson(metrics)},
                 {"turns", EndsAsJson(metrics)},
                 {"request_memory", accounts ? AccountsAsJson(*accounts) : Json()},
                 {"stalls", snapshot.num_stalls},
                 {"sequences", std::move(rows)}};
  if (models) out.push_back({"models", ModelsAsJson(*models)});
  return out;
}

void AddStatusRoute(const SnapshotSource& source, const TurnService& service,
                    const ServerMetrics& metrics, Auth auth, Router& router) {
  router.Add(
      "GET", "/status", auth,
      [source, &service, &metrics](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
        const auto snapshot = source();
        const Json json = StatusAsJson(*snapshot, metrics, service.NamesOf(snapshot->rows),
                                       SteadyClock().now_us());
        reply->Send(200, {{"content-type", "application/json"}, {"cache-control", "no-store"}},
                    WriteJson(json));
      });
}

}  // namespace hearth
