// SPDX-License-Identifier: Apache-2.0
#include "platform/topology.h"

#include <hwloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "platform/cgroup.h"
#include "platform/file.h"

namespace hearth {
namespace {

// The kernel's texts about groups and mounts; more than this is nothing we understand.
std::string LimitText(const std::string& path) { return ReadKernelText(path, size_t{1} << 20); }

using Machine = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

// What hwloc knows of this system; null when it knows nothing.
Machine LoadMachine(unsigned long flags) {
  hwloc_topology_t machine = nullptr;
  if (hwloc_topology_init(&machine) != 0) return {nullptr, hwloc_topology_destroy};
  Machine owned(machine, hwloc_topology_destroy);
  hwloc_topology_set_flags(machine, flags | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  if (hwloc_topology_load(machine) != 0) owned.reset();
  return owned;
}

using CpuSet = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

// The smallest node with memory that the processor belongs to. Processors of a node without memory
// (an empty socket) belong to the first that has some.
int NodeOf(hwloc_topology_t machine, unsigned cpu) {
  hwloc_obj_t best = nullptr, any = nullptr;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    if (node->attr->numanode.local_memory == 0) continue;
    if (any == nullptr) any = node;
    if (hwloc_bitmap_isset(node->cpuset, cpu) == 0) continue;
    if (best == nullptr || hwloc_bitmap_weight(node->cpuset) < hwloc_bitmap_weight(best->cpuset)) {
      best = node;
    }
  }
  if (best == nullptr) best = any;
  return best == nullptr ? 0 : static_cast<int>(best->os_index);
}

// hwloc ranks kinds of cores by their speed; 0 for all where there is one kind.
int SpeedOf(hwloc_topology_t machine, unsigned cpu) {
  const int kinds = hwloc_cpukinds_get_nr(machine, 0);
  const CpuSet set(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  for (int kind = 0; kind < kinds; ++kind) {
    int rank = 0;
    if (hwloc_cpukinds_get_info(machine, static_cast<unsigned>(kind), set.get(), &rank, nullptr,
                                nullptr, 0) == 0 &&
        rank > 0 && hwloc_bitmap_isset(set.get(), cpu) != 0) {
      return rank;
    }
  }
  return 0;
}

std::vector<CpuPlace> CpusOf(hwloc_topology_t machine) {
  std::vector<CpuPlace> cpus;
  const int count = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PU);
  for (int i = 0; i < count; ++i) {
    hwloc_obj_t cpu = hwloc_get_obj_by_type(machine, HWLOC_OBJ_PU, static_cast<unsigned>(i));
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_CORE, cpu);
    if (core == nullptr) continue;  // then it counts as a core
    cpus.push_back({static_cast<int>(cpu->os_index), static_cast<int>(core->logical_index),
                    NodeOf(machine, cpu->os_index), SpeedOf(machine, cpu->os_index)});
  }
  return cpus;
}

std::vector<CpuPlace> ReadMachineCpus() {
  // The caller's binding is neither asked nor changed: the answer is for every thread.
  const Machine machine = LoadMachine(HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  return machine ? CpusOf(machine.get()) : std::vector<CpuPlace>();
}

void CountCoresAndNodes(Topology& found) {
  found.num_cores = found.num_cpus;
  const Machine machine = LoadMachine(HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
  if (!machine) return;
  const int cores = hwloc_get_nbobjs_by_type(machine.get(), HWLOC_OBJ_CORE);
  if (cores > 0) found.num_cores = std::min(cores, found.num_cpus);
  found.num_numa_nodes = std::max(1, hwloc_get_nbobjs_by_type(machine.get(), HWLOC_OBJ_NUMANODE));
}

// The smaller of two limits, either of which may be absent.
template <class T>
std::optional<T> Tighter(std::optional<T> a, std::optional<T> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// What `ulimit -v` leaves of the address space. What is reserved counts there, used or not.
std::optional<uint64_t> AddressSpaceLeft() {
  rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const std::string sizes = LimitText("/proc/self/statm");  // the first is all that is mapped
  uint64_t pages = 0;
  std::from_chars(sizes.data(), sizes.data() + sizes.size(), pages);
  const uint64_t mapped = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > mapped ? limit.rlim_cur - mapped : 0;
}

std::optional<double> QuotaOf(const std::string& self, const std::string& mounts) {
  std::optional<double> tightest;
  const auto cpu = FindCgroup(self, mounts, "cpu");
  if (!cpu) return tightest;
  for (const std::string& folder : cpu->folders) {
    const auto quota = cpu->unified ? CpuQuotaV2(LimitText(folder + "/cpu.max"))
                                    : CpuQuotaV1(LimitText(folder + "/cpu.cfs_quota_us"),
                                                 LimitText(folder + "/cpu.cfs_period_us"));
    tightest = Tighter(tightest, quota);
  }
  return tightest;
}

void ReadLimits(Topology& found) {
  found.memory_limit_bytes = AddressSpaceLeft();
  const std::string self = LimitText("/proc/self/cgroup");
  const std::string mounts = LimitText("/proc/self/mountinfo");
  found.cpu_quota = QuotaOf(self, mounts);
  if (const auto memory = FindCgroup(self, mounts, "memory")) {
    for (const std::string& file : MemoryLimitFiles(*memory)) {
      found.memory_limit_bytes = Tighter(found.memory_limit_bytes, MemoryLimit(LimitText(file)));
    }
  }
}

}  // namespace

std::optional<double> ReadCpuQuota() {
  return QuotaOf(LimitText("/proc/self/cgroup"), LimitText("/proc/self/mountinfo"));
}

int Topology::useful_threads() const {
  if (!cpu_quota) return num_cores;
  return std::clamp(static_cast<int>(std::min(*cpu_quota, 1e6) + 0.75), 1, num_cores);
}

uint64_t Topology::usable_memory_bytes() const {
  return std::min(memory_bytes, memory_limit_bytes.value_or(memory_bytes));
}

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  // The kernel refuses a mask smaller than its own, so it grows until accepted.
  for (int most = 1024; most <= 1 << 20; most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(static_cast<size_t>(most)), [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(most));
    if (::sched_getaffinity(0, bytes, mask.get()) != 0) continue;
    for (int cpu = 0; cpu < most; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, mask.get())) cpus.push_back(cpu);
    }
    break;
  }
  return cpus;
}

const std::vector<CpuPlace>& MachineCpus() {
  static const std::vector<CpuPlace> cpus = ReadMachineCpus();
  return cpus;
}

std::vector<CpuPlace> DescribedCpus(const std::string& description, std::span<const int> slow) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return {};
  const Machine machine(made, hwloc_topology_destroy);
  const bool is_xml = description.starts_with('<');
  if ((is_xml ? hwloc_topology_set_xmlbuffer(made, description.c_str(),
                                             static_cast<int>(description.size()) + 1)
              : hwloc_topology_set_synthetic(made, description.c_str())) != 0) {
    return {};
  }
  if (hwloc_topology_load(made) != 0) return {};
  if (!slow.empty()) {
    const CpuSet kind(hwloc_bitmap_alloc(), hwloc_bitmap_free);
    for (const int cpu : slow) hwloc_bitmap_set(kind.get(), static_cast<unsigned>(cpu));
    hwloc_cpukinds_register(made, kind.get(), 0, 0, nullptr, 0);
    hwloc_bitmap_andnot(kind.get(), hwloc_topology_get_topology_cpuset(made), kind.get());
    hwloc_cpukinds_register(made, kind.get(), 1, 0, nullptr, 0);
  }
  return CpusOf(made);
}

Topology ReadTopology() {
  Topology found;
  found.num_cpus = std::max(1, static_cast<int>(AllowedCpus().size()));
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
