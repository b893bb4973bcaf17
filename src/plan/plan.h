// SPDX-License-Identifier: Apache-2.0
// What `hearth plan` found, as data: text, JSON and page are three ways to show one record.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/costs.h"
#include "plan/headline.h"
#include "plan/load.h"
#include "plan/machine.h"
#include "plan/times.h"
namespace hearth {

// Whether it fits, and what is left for context.
struct FitFigures {
  uint64_t usable_bytes = 0;
  int64_t weight_bytes = 0, kv_bytes = 0;
  int64_t other_bytes = 0;   // of the largest step
  int64_t server_bytes = 0;  // beside the model
  int64_t total_bytes() const { return weight_bytes + kv_bytes + other_bytes + server_bytes; }
  int64_t kv_tokens = 0;  // of all sequences together
  int max_context = 0;    // of the model
  std::string problem;    // why it does not fit; empty: it does
  int context() const;    // of one sequence: what model and memory hold
};

struct PlannedCase {
  std::string name;  // "decode, 8 users"
  int users = 1, depth = 0, prompt = 0;
  double tokens_per_second = 0;
  double seconds = 0;  // of a step, or of the prompt
  std::string bound;   // "memory" or "arithmetic"
};

// A point of a picture: decode of so many users or after so many tokens, or a prompt of so many.
struct PlannedPoint {
  int at = 0;
  double tokens_per_second = 0, seconds = 0;
};

// A flag of `hearth serve`.
struct PlannedSetting {
  std::string flag, value, why;
};
// Something to buy or to change.
struct PlannedHelp {
  std::string what;
  double decode = 1, users = 1, prefill = 1;  // so many times as fast
  std::string note;
};

struct PlanRecord {
  std::string hearth, model, family, machine;
  std::string date;  // for the page; empty: not told
  bool is_here = true;
  std::string isa;
  int layers = 0, sampled_layers = 0;
  double sample_seconds = 0, others = 0;  // others: their share of the machine meanwhile
  ModelCosts costs;
  int n_experts = 0, n_active_experts = 0;
  MachineRates here, rates;  // measured, and those that the figures are for
  FitFigures fit;
  std::vector<PlannedCase> cases;  // empty when it does not fit
  std::vector<PlannedPoint> by_users, by_depth, by_prompt;
  std::vector<PlannedSetting> settings;
  std::vector<PlannedHelp> helps;
  std::optional<Headline> headline;
  std::vector<std::string> assumptions;
  std::optional<UserLoad> load;
  std::optional<LoadTarget95> target;
  std::optional<LoadOutcome> one_server;
  std::optional<ReplicaPlan> replicas;
};

// Fills in cases, curves, settings and helps from the times on the machine in question. `work`
// gives what prompts of other lengths must compute.
struct PlanInput {
  const ModelTimes& times;
  const WorkModel& work;
  const KvLayout& kv;
  int chunk = 512;
  double itl_target_s = 0.2;
  int max_sequences = 64;
};
void AddCases(const PlanInput& input, PlanRecord& record);
void AddCurves(const PlanInput& input, PlanRecord& record);
void AddSettings(const PlanInput& input, PlanRecord& record);
void AddHelps(const PlanInput& input, PlanRecord& record);

std::string PlanText(const PlanRecord& record);
Json PlanJson(const PlanRecord& record);
std::string PlanPage(const PlanRecord& record);  // HTML that loads nothing

}  // namespace hearth
