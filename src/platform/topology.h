// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine: processors, time on them, memory.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

  // One thread per core, and as many as the quota pays for. A fraction of a thread counts as one
  // from a quarter on: its share of the time is more than a second thread costs.
  int useful_threads() const;
  // What a plan may count on.
  uint64_t usable_memory_bytes() const;
};

// Never fails: what cannot be found out keeps its default. Takes some milliseconds.
Topology ReadTopology();
// Its cpu_quota alone.
std::optional<double> ReadCpuQuota();

// A logical processor, and where it is.
struct CpuPlace {
  int cpu = 0;
  int core = 0;   // siblings have the same
  int node = 0;   // the system's number of its nearest memory node that has memory
  int speed = 0;  // of its kind of core: 0 the slowest, as efficiency cores of a hybrid chip
};

// The processors of this machine. Read once: they do not move. Thread: any.
const std::vector<CpuPlace>& MachineCpus();
// Those of a machine that hwloc describes in a line, such as "package:2 core:8 pu:2", or in XML (as
// `lstopo machine.xml` writes it); empty when it does not understand. `slow` are processors of a
// slower kind.
std::vector<CpuPlace> DescribedCpus(const std::string& description, std::span<const int> slow = {});
// Those that the calling thread may run on, ascending. Empty when the system does not say.
std::vector<int> AllowedCpus();

}  // namespace hearth
