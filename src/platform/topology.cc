// SPDX-License-Identifier: Apache-2.0
#include "platform/topology.h"

#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "platform/cgroup.h"
#include "platform/file.h"

namespace hearth {
namespace {

// The kernel's texts about groups and mounts; more than this is nothing we understand.
std::string LimitText(const std::string& path) { return ReadKernelText(path, size_t{1} << 20); }

int NumAllowedCpus() {
  // The kernel refuses a mask smaller than its own, so it grows until accepted.
  for (int most = 1024; most <= 1 << 20; most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(static_cast<size_t>(most)), [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(most));
    if (::sched_getaffinity(0, bytes, mask.get()) == 0) {
      return std::max(1, CPU_COUNT_S(bytes, mask.get()));
    }
  }
  return 1;
}

void CountCoresAndNodes(Topology& found) {
  found.num_cores = found.num_cpus;
  hwloc_topology_t machine = nullptr;
  if (hwloc_topology_init(&machine) != 0) return;
  hwloc_topology_set_flags(
      machine, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  if (hwloc_topology_load(machine) == 0) {
    const int cores = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_CORE);
    if (cores > 0) found.num_cores = std::min(cores, found.num_cpus);
    found.num_numa_nodes = std::max(1, hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_NUMANODE));
  }
  hwloc_topology_destroy(machine);
}

// The smaller of two limits, either of which may be absent.
template <class T>
std::optional<T> Tighter(std::optional<T> a, std::optional<T> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

void ReadLimits(Topology& found) {
  const std::string self = LimitText("/proc/self/cgroup");
  const std::string mounts = LimitText("/proc/self/mountinfo");
  if (const auto cpu = FindCgroup(self, mounts, "cpu")) {
    for (const std::string& folder : cpu->folders) {
      const auto quota = cpu->unified ? CpuQuotaV2(LimitText(folder + "/cpu.max"))
                                      : CpuQuotaV1(LimitText(folder + "/cpu.cfs_quota_us"),
                                                   LimitText(folder + "/cpu.cfs_period_us"));
      found.cpu_quota = Tighter(found.cpu_quota, quota);
    }
  }
  if (const auto memory = FindCgroup(self, mounts, "memory")) {
    const char* name = memory->unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (const std::string& folder : memory->folders) {
      found.memory_limit_bytes =
          Tighter(found.memory_limit_bytes, MemoryLimit(LimitText(folder + name)));
    }
  }
}

}  // namespace

int Topology::useful_threads() const {
  if (!cpu_quota) return num_cores;
  return std::clamp(static_cast<int>(std::min(*cpu_quota, 1e6)), 1, num_cores);
}

uint64_t Topology::usable_memory_bytes() const {
  return std::min(memory_bytes, memory_limit_bytes.value_or(memory_bytes));
}

Topology ReadTopology() {
  Topology found;
  found.num_cpus = NumAllowedCpus();
  CountCoresAndNodes(found);
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    found.memory_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  }
  ReadLimits(found);
  return found;
}

}  // namespace hearth
