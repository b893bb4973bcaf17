// SPDX-License-Identifier: Apache-2.0
#include "server/observe/account_metrics.h"

#include <utility>

namespace hearth {

void AddAccounts(const AccountCounts& counts, MetricFamilies& out) {
  std::vector<LabelledValue> held, spent;
  for (size_t i = 0; i < kHeldNames.size(); ++i) {
    held.push_back({{{"kind", kHeldNames[i]}}, static_cast<double>(counts.held_bytes[i])});
  }
  for (size_t i = 0; i < kStageNames.size(); ++i) {
    spent.push_back({{{"stage", kStageNames[i]}}, counts.seconds[i]});
  }
  out.Gauges("hearth_account_bytes", "Memory that requests hold, by kind.", held);
  out.Gauge("hearth_account_budget_bytes", "Memory that all requests may hold together.",
            static_cast<double>(counts.budget_bytes));
  out.Gauge("hearth_account_largest_bytes", "Memory that one client's requests hold, at most.",
            static_cast<double>(counts.largest_bytes));
  out.Gauge("hearth_account_clients", "Clients whose requests hold memory.",
            static_cast<double>(counts.accounts));
  out.Counters("hearth_account_seconds_total", "Processor time on requests' texts, by stage.",
               spent);
  const auto refused = [](const char* why, int64_t count) {
    return LabelledValue{{{"reason", why}}, static_cast<double>(count)};
  };
  out.Counters("hearth_account_refused_total", "Requests refused for the memory they would hold.",
               {refused("share", counts.refused_share), refused("full", counts.refused_full),
                refused("background", counts.refused_background)});
  out.Counter("hearth_account_cut_total", "Requests ended because they held most.",
              static_cast<double>(counts.cut));
}

Json AccountsAsJson(const AccountCounts& counts) {
  JsonObject held;
  for (size_t i = 0; i < kHeldNames.size(); ++i) {
    held.push_back({kHeldNames[i], counts.held_bytes[i]});
  }
  return JsonObject{{"budget_bytes", counts.budget_bytes},
                    {"share_bytes", counts.share_bytes},
                    {"held_bytes", std::move(held)},
                    {"clients", counts.accounts},
                    {"largest_bytes", counts.largest_bytes},
                    {"refused_share", counts.refused_share},
                    {"refused_full", counts.refused_full},
                    {"refused_background", counts.refused_background},
                    {"cut", counts.cut}};
}

}  // namespace hearth
