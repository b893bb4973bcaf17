// SPDX-License-Identifier: Apache-2.0
#include "gpu/step_graphs.h"

#include <utility>

namespace hearth::cuda {

Status StepGraphs::Run(const StepShape& shape, const std::function<Status()>& ask) {
  // Graphs that point to memory of the past are never launched again.
  if (!kept_.empty() && kept_.begin()->first.memory != shape.memory) kept_.clear();
  if (kept_.size() >= kMostShapes && kept_.count(shape) == 0) kept_.clear();
  Kept& kept = kept_[shape];
  if (++kept.num_seen == 1 || is_exhausted_) return ask();
  if (!kept.is_graph) {
    Result<LaunchGraph> made = device_.Record(ask);
    if (!made.ok() && made.status().code() == Code::kExhausted) {
      is_exhausted_ = true;
      kept_.clear();
      return ask();
    }
    HEARTH_TRY(made.status());
    kept.graph = *std::move(made);
    kept.is_graph = true;
  }
  ++num_launched_;
  return device_.Launch(kept.graph);
}

}  // namespace hearth::cuda
