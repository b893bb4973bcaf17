// SPDX-License-Identifier: Apache-2.0
// A page of metrics being written, each under our name and under the names others know it by.
// Internal to metrics: the one header with prometheus-cpp's types.
#pragma once
#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/snapshot.h"
#include "server/models/model_host.h"
namespace hearth {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;
struct LabelledValue {
  MetricLabels labels;
  double value = 0;
};

// Thread: one.
class MetricFamilies {
 public:
  // `theirs`: names of vLLM's, which carry the model's name as a label, go in as well.
  MetricFamilies(std::string model, bool with_theirs)
      : model_(std::move(model)), with_theirs_(with_theirs) {}
  using TheirNames = std::vector<const char*>;
  void Counter(const char* name, const char* help, double value, const TheirNames& theirs = {});
  void Gauge(const char* name, const char* help, double value, const TheirNames& theirs = {});
  void Counters(const char* name, const char* help, const std::vector<LabelledValue>& values,
                const TheirNames& theirs = {});
  void Gauges(const char* name, const char* help, const std::vector<LabelledValue>& values);
  void Histogram(const char* name, const char* help,
                 const prometheus::ClientMetric::Histogram& histogram,
                 const TheirNames& theirs = {});
  // Only under a name of vLLM's.
  void Theirs(const char* name, prometheus::MetricType type, const char* help,
              const std::vector<LabelledValue>& values);
  const std::vector<prometheus::MetricFamily>& all() const { return all_; }

 private:
  void Add(const char* name, prometheus::MetricType type, const char* help,
           const std::vector<LabelledValue>& values);
  std::string model_;
  bool with_theirs_;
  std::vector<prometheus::MetricFamily> all_;
};

// What there is of several models.
void AddModels(const HostCounts& counts, MetricFamilies& out);
// What the engine says of itself.
void AddEngine(const EngineSnapshot& snapshot, MetricFamilies& out);

}  // namespace hearth
