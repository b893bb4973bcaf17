// SPDX-License-Identifier: Apache-2.0
#include "server/observe/fleet_families.h"

#include "server/observe/metric_families.h"

namespace hearth {

void AddKvEvents(const KvEventCounts& counts, MetricFamilies& out) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  out.Counters("hearth_kv_events_total", "Cached blocks that subscribers were told of.",
               {{{{"kind", "stored"}}, number(counts.stored)},
                {{{"kind", "removed"}}, number(counts.removed)}});
  out.Counter("hearth_kv_event_batches_total", "Batches of KV events published, empty ones too.",
              number(counts.batches));
  out.Counter("hearth_kv_events_dropped_total",
              "KV events that found no room in the queue; all blocks are told again after that.",
              number(counts.dropped));
  out.Counter("hearth_kv_events_retold_total", "Times that all cached blocks were told again.",
              number(counts.retold));
  out.Counters("hearth_kv_event_replays_total",
               "Subscribers that asked for what they missed, by what they got.",
               {{{{"answer", "missed"}}, number(counts.replays - counts.full_replays)},
                {{{"answer", "everything"}}, number(counts.full_replays)}});
  out.Gauge("hearth_kv_events_queued", "KV events that wait to be published.",
            number(counts.queued));
  out.Gauge("hearth_kv_event_blocks", "Cached blocks that subscribers know of now.",
            number(counts.blocks));
}

void AddBatches(const BatchCounts& counts, MetricFamilies& out) {
  std::vector<LabelledValue> jobs;
  for (const auto& [status, count] : counts.jobs) {
    jobs.push_back({{{"status", status}}, static_cast<double>(count)});
  }
  out.Gauges("hearth_batch_jobs", "Batch jobs in the store, by status.", jobs);
  out.Gauges("hearth_batch_lines", "Lines of batch jobs that are not answered.",
             {{{{"state", "waiting"}}, static_cast<double>(counts.waiting)},
              {{{"state", "running"}}, static_cast<double>(counts.running)}});
  out.Gauge("hearth_batch_held",
            "1 while batch jobs wait because their store fails, such as on a full disk.",
            counts.is_held ? 1 : 0);
  out.Counters("hearth_batch_lines_total", "Lines of batch jobs that this replica answered.",
               {{{{"result", "completed"}}, static_cast<double>(counts.completed)},
                {{{"result", "failed"}}, static_cast<double>(counts.failed)}});
}

}  // namespace hearth
