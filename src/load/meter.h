// SPDX-License-Identifier: Apache-2.0
// A backend with a stopwatch, and what the backend does alone: the measure of what everything
// around it costs.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "load/target.h"
namespace hearth {

struct MeteredStep {
  double start_s = 0, run_s = 0;
  int tokens = 0, sequences = 0;
  int prompt_tokens = 0, prompts = 0;  // of these, in slices of more than one token
  int streams() const { return sequences - prompts; }
  // Since the step before ended, when one of its sequences is in this one too: then nobody waited
  // for work, and the time went into planning, sampling, booking and telling. -1: not so.
  double own_s = -1;
};

// What the steps of a stretch say together.
struct StepSummary {
  int64_t steps = 0, tokens = 0;
  double run_s = 0, own_s = 0;  // of the steps with own_s >= 0
  double mean_sequences = 0;
  double own_share() const { return run_s + own_s > 0 ? own_s / (run_s + own_s) : 0; }
};
StepSummary SummaryOf(std::span<const MeteredStep> steps);

// Thread: as the backend inside; steps() when nothing runs.
class MeteredBackend : public Backend {
 public:
  MeteredBackend(std::shared_ptr<Backend> inside, const LoadClock& clock)
      : inside_(std::move(inside)), clock_(clock) {}
  std::string_view name() const override { return inside_->name(); }
  KvLayout kv_layout() const override { return inside_->kv_layout(); }
  int vocab_size() const override { return inside_->vocab_size(); }
  int hidden_size() const override { return inside_->hidden_size(); }
  BackendCapabilities capabilities() const override { return inside_->capabilities(); }
  Status Begin(const StepPlan& plan) override;
  Result<std::span<const RowResult>> Finish() override;
  // Where the steps are written; outlives the backend's own life inside an engine.
  std::shared_ptr<const std::vector<MeteredStep>> steps() const { return steps_; }

 private:
  std::shared_ptr<Backend> inside_;
  const LoadClock& clock_;
  std::shared_ptr<std::vector<MeteredStep>> steps_ = std::make_shared<std::vector<MeteredStep>>();
  std::vector<SeqId> last_;
  double began_s_ = 0, last_end_s_ = 0;
};

// Tokens per second of `sequences` decoding `steps` steps after `context` tokens each, with nothing
// around the backend. kExhausted when its blocks do not hold that.
Result<double> BackendRate(Backend& backend, int sequences, int context, int steps);

}  // namespace hearth
