// SPDX-License-Identifier: Apache-2.0
#include "server/observe/paging_families.h"

#include "server/observe/metric_families.h"

namespace hearth {

void AddPagingFamilies(const PagingState& state, MetricFamilies& out) {
  if (state.frames == 0) return;
  const auto missed = static_cast<double>(state.needed - state.hits - state.ahead_hits);
  out.Counters(
      "hearth_experts_needed_total",
      "Experts that a layer of a step needed: they were in memory, were read ahead, or had "
      "to be waited for.",
      {{{{"from", "memory"}}, static_cast<double>(state.hits)},
       {{{"from", "ahead"}}, static_cast<double>(state.ahead_hits)},
       {{{"from", "disk"}}, missed}});
  out.Counter("hearth_expert_read_bytes_total", "Bytes of experts read from disk.",
              static_cast<double>(state.bytes_read));
  out.Counter("hearth_expert_read_seconds_total", "Time in which experts were being read.",
              state.read_s);
  out.Counter("hearth_expert_wait_seconds_total", "Time that steps waited for experts.",
              state.waited_s);
  out.Counter("hearth_expert_read_errors_total", "Reads of experts that failed.",
              static_cast<double>(state.errors));
  out.Gauge("hearth_expert_resident_bytes", "Memory that experts have taken.",
            static_cast<double>(state.resident_bytes));
  out.Gauge("hearth_expert_capacity_bytes", "Memory that experts may take.",
            static_cast<double>(state.most_bytes));
}

Json PagingAsJson(const PagingState& state) {
  if (state.frames == 0) return Json();
  const double rate = state.read_s > 0 ? static_cast<double>(state.bytes_read) / state.read_s : 0;
  const double hits =
      state.needed > 0 ? static_cast<double>(state.hits) / static_cast<double>(state.needed) : 0;
  return JsonObject{{"experts", state.experts},
                    {"experts_in_memory", state.frames},
                    {"expert_bytes", state.expert_bytes},
                    {"resident_bytes", state.resident_bytes},
                    {"capacity_bytes", state.most_bytes},
                    {"needed", state.needed},
                    {"hits", state.hits},
                    {"ahead_hits", state.ahead_hits},
                    {"hit_share", hits},
                    {"bytes_read", state.bytes_read},
                    {"read_bytes_per_s", rate},
                    {"waited_s", state.waited_s},
                    {"errors", state.errors}};
}

}  // namespace hearth
