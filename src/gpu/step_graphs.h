// SPDX-License-Identifier: Apache-2.0
// Steps that come again and again, decoding with so many sequences, as graphs of launches: one call
// of the driver instead of hundreds.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "gpu/device.h"
namespace hearth::cuda {

// All that the launches of a decoding step depend on; what else a step needs lies in memory that it
// copies to the device. Steps of one shape have the same launches with the same arguments.
struct StepShape {
  int tokens = 0;
  int most_top = 0;
  std::vector<int> spans;  // that attention is launched for, of each group
  int64_t memory = 0;      // which arrays of the device the plan is copied to

  auto operator<=>(const StepShape&) const = default;
};

// Thread: as its device, which outlives it.
class StepGraphs {
 public:
  explicit StepGraphs(Device& device) : device_(device) {}
  // Asks for a step's launches, which `ask` does one by one. From the second step of a shape on
  // they are a graph; without memory for one they stay single launches. Nothing may be under way.
  Status Run(const StepShape& shape, const std::function<Status()>& ask);
  int num_launched() const { return num_launched_; }  // graphs, since the start

 private:
  struct Kept {
    int num_seen = 0;
    bool is_graph = false;
    LaunchGraph graph;
  };
  // Of gpt-oss-20b a graph has some 400 launches, of a few hundred bytes each.
  static constexpr size_t kMostShapes = 128;

  Device& device_;
  std::map<StepShape, Kept> kept_;
  bool is_exhausted_ = false;  // there was no memory for a graph
  int num_launched_ = 0;
};

}  // namespace hearth::cuda
