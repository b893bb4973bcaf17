// SPDX-License-Identifier: Apache-2.0
// Which worker sits on which processor, and which memory node its rows of the weights belong to.
// Pure: the machine is an argument.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "platform/topology.h"
namespace hearth {

// How many memory nodes to place weights on.
inline constexpr int kNumaAuto = 0;  // every node that has memory and processors of ours
inline constexpr int kNumaOff = 1;   // the machine counts as one node

struct WorkerPlan {
  std::vector<int> cpus;  // by worker; empty: nobody is pinned
  // Workers [first[k], first[k + 1]) are those of node k; [nodes + 1].
  std::vector<int> first;
  // The system's numbers of the nodes' memory, [nodes]; empty: none is bound.
  std::vector<int> memory;
  // Processors' worth of time that are paid for, when that is a part of the last worker; else 0.
  double quota = 0;

  int size() const { return first.back(); }
  int num_nodes() const { return static_cast<int>(first.size()) - 1; }
  int node_of(int worker) const;
  // Where node k's part of n equal things begins: parts are proportional to workers. edge(n, 0) is
  // 0 and edge(n, num_nodes()) is n.
  int edge(int n, int node) const;
};

// One worker on every core before a core gets a second, because siblings share a core's arithmetic;
// fast kinds of cores before slow ones; as many on each node as its cores allow; nodes one after
// the other. A processor that `machine` does not know counts as a core of node 0. Nobody is pinned
// when there are more workers than processors: then the system shares them out better.
// `nodes`: kNumaAuto, kNumaOff, or a number. So many real nodes are used, the first ones; when the
// machine has fewer, cores are dealt into so many groups and no memory is bound, which tests
// placement on a small machine.
WorkerPlan PlanWorkers(std::span<const CpuPlace> machine, std::span<const int> allowed,
                       int num_workers, int nodes);
// The `quota` of a plan, where the cgroup has one: on one node, as nobody stands in quickly for the
// last worker of another, and when it pays for all workers but the last.
double PartlyPaid(const WorkerPlan& plan, std::optional<double> quota);
// For this machine, the processors that this thread may use, and its quota.
WorkerPlan PlanWorkersHere(int num_workers, int nodes);

}  // namespace hearth
