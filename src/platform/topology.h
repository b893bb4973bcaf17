// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine: processors, time on them, memory.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>
namespace hearth {

// A plain record, read once at start-up. Every count is at least 1.
struct Topology {
  int num_cpus = 1;                 // logical processors that our affinity allows
  int num_cores = 1;                // physical cores among them
  int num_numa_nodes = 1;           // memory nodes beside them
  std::optional<double> cpu_quota;  // processors' worth of time per period, by cgroup
  uint64_t memory_bytes = 0;        // of the whole machine
  // The tightest of our cgroup, its parents, and what is left of the address space (ulimit -v).
  std::optional<uint64_t> memory_limit_bytes;

  // One thread per core, and no more than the quota pays for: a throttled thread holds up a step.
  int useful_threads() const;
  // What a plan may count on.
  uint64_t usable_memory_bytes() const;
};

// Never fails: what cannot be found out keeps its default. Takes some milliseconds.
Topology ReadTopology();

// A logical processor, and which core it is a part of: siblings have the same.
struct CpuPlace {
  int cpu = 0, core = 0;
};

// The processors of this machine. Read once: they do not move. Thread: any.
const std::vector<CpuPlace>& MachineCpus();
// Those that the calling thread may run on, ascending. Empty when the system does not say.
std::vector<int> AllowedCpus();

// The processor for each worker: one on every allowed core before any core gets a second, because
// siblings share a core's arithmetic. Cores come in the order of their first allowed processor. A
// processor that `machine` does not know counts as a core. Empty when there are more workers than
// processors: then the system shares them out better.
std::vector<int> WorkerCpus(std::span<const CpuPlace> machine, std::span<const int> allowed,
                            int num_workers);

}  // namespace hearth
