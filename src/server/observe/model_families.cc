// SPDX-License-Identifier: Apache-2.0
// The part of the metrics that tells of several models.
#include "server/observe/metric_families.h"

namespace hearth {

void AddModels(const HostCounts& counts, MetricFamilies& out) {
  std::vector<LabelledValue> states, bytes, users, loads, unloads, taken, failures, seconds;
  for (const HostCounts::Model& each : counts.models) {
    const auto add = [&](std::vector<LabelledValue>& to, double value) {
      to.push_back({{{"model", each.name}}, value});
    };
    states.push_back({{{"model", each.name}, {"state", each.state}}, 1});
    add(bytes, static_cast<double>(each.planned_bytes));
    add(users, each.num_users);
    add(loads, static_cast<double>(each.num_loads));
    add(unloads, static_cast<double>(each.num_unloads));
    add(taken, static_cast<double>(each.num_taken));
    add(failures, static_cast<double>(each.num_failures));
    add(seconds, each.load_s);
  }
  out.Gauges("hearth_models", "Always 1; the labels say which model is in which state.", states);
  out.Gauges("hearth_model_planned_bytes", "Memory planned for a loaded model.", bytes);
  out.Gauges("hearth_model_users", "Requests that use a model now.", users);
  out.Counters("hearth_model_loads_total", "Times that a model was loaded.", loads);
  out.Counters("hearth_model_unloads_total", "Times that a model left.", unloads);
  out.Counters("hearth_model_taken_total",
               "Times that a model left for one client while another one used it.", taken);
  out.Counters("hearth_model_load_failures_total", "Times that a model could not be loaded.",
               failures);
  out.Counters("hearth_model_load_seconds_total", "Time spent on loading a model.", seconds);
  out.Gauge("hearth_models_budget_bytes", "Memory that all models together may have.",
            static_cast<double>(counts.budget_bytes));
  out.Gauge("hearth_models_planned_bytes", "Memory planned for those that are loaded.",
            static_cast<double>(counts.planned_bytes));
  out.Gauge("hearth_models_waiting_requests", "Requests that wait for a model to be loaded.",
            counts.num_waiting);
  out.Gauge("hearth_models_deferred_requests",
            "Of those, requests that wait until other clients have had their time with their "
            "models.",
            counts.num_deferred);
}

}  // namespace hearth
