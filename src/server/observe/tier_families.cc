// SPDX-License-Identifier: Apache-2.0
#include "server/observe/tier_families.h"

#include "server/observe/metric_families.h"

namespace hearth {

namespace {

using Values = std::vector<LabelledValue>;

// Adds a value to a family: `tier` is its first label.
void Add(Values& to, const TierPart& part, auto value, MetricLabels more = {}) {
  more.insert(more.begin(), {"tier", part.name});
  to.push_back({std::move(more), static_cast<double>(value)});
}

// Prompts that missed something, by why.
Json MissedAsJson(const TierPart& part, const TierCounts& counts) {
  JsonObject missed;
  for (const TierMissCounts& each : counts.misses) {
    if (each.tier != part.name) continue;
    for (size_t i = 1; i < kNumTierMisses; ++i) {
      missed.push_back({kTierMissNames[i], each.counts[i]});
    }
  }
  return missed;
}

Json PartAsJson(const TierPart& part, const TierCounts& counts) {
  const TierStats& stats = part.stats;
  return JsonObject{{"name", part.name},
                    {"used_bytes", stats.used_bytes},
                    {"capacity_bytes", stats.capacity_bytes},
                    {"blocks", stats.num_records >= 0 ? Json(stats.num_records) : Json()},
                    {"hits", stats.num_hits},
                    {"misses", stats.num_misses},
                    {"stored", stats.num_stored},
                    {"declined", stats.num_declined},
                    {"corrupt", stats.num_corrupt},
                    {"failed", stats.num_failed},
                    {"bytes_read", stats.bytes_read},
                    {"bytes_written", stats.bytes_written},
                    {"bytes_spared", stats.bytes_spared},
                    {"missed_prompts", MissedAsJson(part, counts)},
                    {"reads", stats.is_reading},
                    {"writes", stats.is_writing}};
}

}  // namespace

void AddTier(const EngineSnapshot& snapshot, MetricFamilies& out) {
  if (!snapshot.tier) return;
  Values fetches, stores, errors, bytes, busy, used, capacity, blocks, working;
  for (const TierPart& part : snapshot.tier_parts) {
    const TierStats& stats = part.stats;
    Add(fetches, part, stats.num_hits, {{"result", "hit"}});
    Add(fetches, part, stats.num_misses, {{"result", "miss"}});
    Add(stores, part, stats.num_stored, {{"result", "stored"}});
    Add(stores, part, stats.num_declined, {{"result", "declined"}});
    Add(errors, part, stats.num_corrupt, {{"kind", "corrupt"}});
    Add(errors, part, stats.num_failed, {{"kind", "io"}});
    Add(bytes, part, stats.bytes_read, {{"direction", "read"}});
    Add(bytes, part, stats.bytes_written, {{"direction", "write"}});
    Add(bytes, part, stats.bytes_spared, {{"direction", "rewrite"}});
    Add(busy, part, static_cast<double>(stats.read_us) * 1e-6, {{"direction", "read"}});
    Add(busy, part, static_cast<double>(stats.write_us) * 1e-6, {{"direction", "write"}});
    Add(working, part, stats.is_reading, {{"direction", "read"}});
    Add(working, part, stats.is_writing, {{"direction", "write"}});
    if (stats.capacity_bytes == 0) continue;  // others decide what it holds
    Add(used, part, stats.used_bytes);
    Add(capacity, part, stats.capacity_bytes);
    if (stats.num_records >= 0) Add(blocks, part, stats.num_records);
  }
  out.Counters("hearth_tier_fetches_total", "Blocks asked of a tier, by what came of it.",
               std::move(fetches));
  out.Counters("hearth_tier_stores_total", "Blocks offered to a tier, by what became of them.",
               std::move(stores));
  out.Counters("hearth_tier_errors_total", "Damaged records, and reads and writes that failed.",
               std::move(errors));
  out.Counters("hearth_tier_bytes_total", "Bytes of records.", std::move(bytes));
  out.Counters("hearth_tier_busy_seconds_total", "Time spent in reading and writing records.",
               std::move(busy));
  const TierCounts& counts = *snapshot.tier;
  const auto loads = [](auto value, const char* result) {
    return LabelledValue{{{"result", result}}, static_cast<double>(value)};
  };
  out.Counters("hearth_tier_loads_total", "Prompts that a tier may have had a part of.",
               {loads(counts.num_loads_used, "used"),
                loads(counts.num_loads - counts.num_loads_used, "nothing"),
                loads(counts.num_not_worth, "computed")});
  Values missed;
  for (const TierMissCounts& each : counts.misses) {
    for (size_t i = 1; i < kNumTierMisses; ++i) {
      missed.push_back(
          {{{"tier", each.tier}, {"why", kTierMissNames[i]}}, static_cast<double>(each.counts[i])});
    }
  }
  out.Counters("hearth_tier_missed_prompts_total",
               "Prompts that began without what a tier might have brought, by why.",
               std::move(missed));
  if (!used.empty()) {
    out.Gauges("hearth_tier_used_bytes", "Bytes that a tier holds.", std::move(used));
    out.Gauges("hearth_tier_capacity_bytes", "Bytes that it may hold.", std::move(capacity));
    out.Gauges("hearth_tier_blocks", "Blocks that it holds.", std::move(blocks));
  }
  out.Gauges("hearth_tier_working", "0 while it is left alone after errors.", std::move(working));
}

Json TierAsJson(const EngineSnapshot& snapshot) {
  if (!snapshot.tier) return Json();
  const TierCounts& counts = *snapshot.tier;
  JsonArray parts;
  for (const TierPart& part : snapshot.tier_parts) parts.push_back(PartAsJson(part, counts));
  return JsonObject{{"parts", std::move(parts)},           {"loading", counts.loading},
                    {"loading_ahead", counts.ahead},       {"loads_ahead", counts.num_ahead},
                    {"storing", counts.storing},           {"loads", counts.num_loads},
                    {"loads_used", counts.num_loads_used}, {"not_worth_it", counts.num_not_worth}};
}

}  // namespace hearth
