// SPDX-License-Identifier: Apache-2.0
// Memory as the kernel manages it: how much, in which pages, on which node.
#include <algorithm>

#include "base/result.h"
#include "doctor/checks.h"

namespace hearth {
namespace {

constexpr char kMeminfo[] = "/proc/meminfo";
constexpr char kNodes[] = "/sys/devices/system/node";

double GibOfKib(int64_t kib) { return static_cast<double>(kib) / (1 << 20); }

Finding Available(const SystemFiles& files) {
  const auto total = files.Field(kMeminfo, "MemTotal");
  const auto available = files.Field(kMeminfo, "MemAvailable");
  if (!total || !available) return Unknown("/proc/meminfo does not say");
  const std::string found =
      Printf("%.1f of %.1f GiB are available", GibOfKib(*available), GibOfKib(*total));
  if (*available >= int64_t{2} << 20) return Good(found);
  return Warning(found,
                 "close other programs, or use a smaller model: `hearth list --all` shows "
                 "what fits");
}

Finding Swap(const SystemFiles& files) {
  const auto total = files.Field(kMeminfo, "SwapTotal"), free = files.Field(kMeminfo, "SwapFree");
  if (!total || !free) return Unknown("/proc/meminfo does not say");
  if (*total == 0) return Good("no swap");
  const double used = GibOfKib(*total - *free);
  if (used < 0.5) return Good(Printf("%.1f GiB of swap, %.1f used", GibOfKib(*total), used));
  return Warning(Printf("%.1f GiB of memory are swapped out", used),
                 "weights that were swapped out are read back from disk at every token: free "
                 "memory, then run: sudo swapoff -a && sudo swapon -a");
}

Finding HugePages(const SystemFiles& files) {
  const std::string text = files.Text("/sys/kernel/mm/transparent_hugepage/enabled");
  if (text.empty()) {
    return Note("this kernel has no transparent huge pages",
                "generation can be 5 to 20 % slower; use a kernel with "
                "CONFIG_TRANSPARENT_HUGEPAGE");
  }
  if (text.find("[never]") == std::string::npos) return Good("transparent huge pages: " + text);
  return Warning("transparent huge pages are off",
                 "generation can be 5 to 20 % slower; run: echo madvise | sudo tee "
                 "/sys/kernel/mm/transparent_hugepage/enabled");
}

Finding Overcommit(const SystemFiles& files) {
  const auto mode = files.Number("/proc/sys/vm/overcommit_memory");
  if (!mode) return Unknown("/proc/sys/vm/overcommit_memory cannot be read");
  if (*mode != 2) return Good("address space may be reserved before it is used");
  const auto limit = files.Field(kMeminfo, "CommitLimit"),
             used = files.Field(kMeminfo, "Committed_AS");
  return Warning(Printf("strict overcommit: %.1f GiB can still be reserved",
                        GibOfKib(std::max<int64_t>(0, limit.value_or(0) - used.value_or(0)))),
                 "a model may fail to load although memory is free; run: sudo sysctl "
                 "vm.overcommit_memory=0");
}

std::vector<int64_t> NodeKib(const SystemFiles& files) {
  std::vector<int64_t> kib;
  for (const std::string& node : files.Numbered(kNodes, "node")) {
    const std::string text = files.Text(std::string(kNodes) + "/" + node + "/meminfo");
    const size_t at = text.find("MemTotal:");
    if (at == std::string::npos) continue;
    const size_t digit = text.find_first_of("0123456789", at);
    if (digit == std::string::npos) continue;
    kib.push_back(LeadingNumber(std::string_view(text).substr(digit)).value_or(0));
  }
  return kib;
}

Finding Nodes(const SystemFiles& files) {
  const std::vector<int64_t> kib = NodeKib(files);
  if (kib.empty()) return Unknown("the kernel names no memory nodes");
  if (kib.size() == 1) return Good("one memory node");
  const auto [least, most] = std::minmax_element(kib.begin(), kib.end());
  if (*least * 2 < *most) {
    return Warning(Printf("%zu memory nodes with %.1f to %.1f GiB each", kib.size(),
                          GibOfKib(*least), GibOfKib(*most)),
                   "the node with little memory limits both: spread the modules evenly over the "
                   "sockets");
  }
  return Note(Printf("%zu memory nodes with %.1f GiB or more each", kib.size(), GibOfKib(*least)),
              "one server per node, bound with `numactl --cpunodebind=N --membind=N hearth serve`, "
              "serves more users than one server over all nodes");
}

Finding Balancing(const SystemFiles& files) {
  const auto mode = files.Number("/proc/sys/kernel/numa_balancing");
  if (!mode || NodeKib(files).size() < 2) return Good("pages stay where they are");
  if (*mode == 0) return Good("automatic NUMA balancing is off");
  return Warning("automatic NUMA balancing is on",
                 "the kernel unmaps weights now and then to see who uses them, which costs speed; "
                 "run: sudo sysctl kernel.numa_balancing=0");
}

Finding ZoneReclaim(const SystemFiles& files) {
  const auto mode = files.Number("/proc/sys/vm/zone_reclaim_mode");
  if (!mode || *mode == 0) return Good("other nodes' memory is used before files are dropped");
  return Warning(Printf("vm.zone_reclaim_mode is %lld", static_cast<long long>(*mode)),
                 "loading stalls while one node is full and another is free; run: sudo sysctl "
                 "vm.zone_reclaim_mode=0");
}

}  // namespace

void AddMemoryChecks(const SystemFiles& files, std::vector<Check>& checks) {
  const auto add = [&](const char* name, Finding (*look)(const SystemFiles&)) {
    checks.push_back({name, [&files, look] { return look(files); }});
  };
  add("memory.available", Available);
  add("memory.swap", Swap);
  add("memory.huge-pages", HugePages);
  add("memory.overcommit", Overcommit);
  add("memory.nodes", Nodes);
  add("memory.balancing", Balancing);
  add("memory.zone-reclaim", ZoneReclaim);
}

}  // namespace hearth
