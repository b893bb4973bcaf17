// SPDX-License-Identifier: Apache-2.0
// What a container or a service unit allows.
#include <algorithm>
#include <cmath>

#include "base/result.h"
#include "doctor/checks.h"
#include "platform/cgroup.h"

namespace hearth {
namespace {

double GibOf(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

// The tightest of a file of ours and of our parents.
std::optional<int64_t> Tightest(const SystemFiles& files, const std::string& file) {
  std::optional<int64_t> tightest;
  for (const std::string& text : files.CgroupTexts("memory", file)) {
    const std::optional<int64_t> bytes = LeadingNumber(text);  // none for "max"
    if (bytes) tightest = std::min(tightest.value_or(*bytes), *bytes);
  }
  return tightest;
}

std::optional<int64_t> OwnField(const SystemFiles& files, const char* controller, const char* file,
                                std::string_view key) {
  const std::vector<std::string> texts = files.CgroupTexts(controller, file);
  return texts.empty() ? std::nullopt : FieldOf(texts[0], key);
}

Finding Quota(const SystemFiles& files) {
  std::optional<double> quota;
  for (const std::string& text : files.CgroupTexts("cpu", "cpu.max")) {
    const std::optional<double> each = CpuQuotaV2(text);
    if (each) quota = std::min(quota.value_or(*each), *each);
  }
  if (!quota) return Good("no limit on processor time");
  const double whole = std::max(1.0, std::floor(*quota));
  if (std::abs(*quota - whole) < 0.01) return Good(Printf("a quota of %.0f processors", whole));
  const std::string found = Printf("a quota of %.2f processors", *quota);
  if (*quota < 1) {
    return Note(
        found,
        "replies stall at the end of each period, once its time is spent: a whole processor "
        "would spare them that");
  }
  // As many threads as Topology::useful_threads takes.
  const double threads = std::floor(*quota + 0.75);
  if (threads < *quota) {
    return Note(found,
                Printf("Hearth uses at most %.0f threads and little of the rest: a whole number "
                       "of processors is spent better",
                       threads));
  }
  return Good(found);
}

Finding Throttled(const SystemFiles& files) {
  const auto periods = OwnField(files, "cpu", "cpu.stat", "nr_periods");
  const auto throttled = OwnField(files, "cpu", "cpu.stat", "nr_throttled");
  if (!periods || !throttled || *periods == 0) return Good("never held back by a quota");
  const double share = static_cast<double>(*throttled) / static_cast<double>(*periods);
  const std::string found = Printf("held back by the quota in %.0f %% of the periods", share * 100);
  if (share <= 0.05) return Good(found);
  return Warning(found,
                 "replies stall for up to 100 ms at a time: raise the quota (docker --cpus, "
                 "Kubernetes limits.cpu, systemd CPUQuota=) or use fewer --threads");
}

Finding MemoryLimitOf(const SystemFiles& files) {
  const std::optional<int64_t> limit = Tightest(files, "memory.max");
  if (!limit) return Good("no limit on memory");
  const std::vector<std::string> current = files.CgroupTexts("memory", "memory.current");
  const int64_t used = current.empty() ? 0 : LeadingNumber(current[0]).value_or(0);
  const std::string found =
      Printf("%.1f GiB used of a limit of %.1f GiB", GibOf(used), GibOf(*limit));
  if (used < *limit / 10 * 9) return Good(found);
  return Warning(found,
                 "the kernel ends a process here soon: raise the limit (docker --memory, "
                 "Kubernetes limits.memory, systemd MemoryMax=) or use a smaller model");
}

Finding MemoryHigh(const SystemFiles& files) {
  const std::optional<int64_t> high = Tightest(files, "memory.high");
  if (!high) return Good("no soft limit on memory");
  return Warning(Printf("a soft limit on memory of %.1f GiB (memory.high)", GibOf(*high)),
                 "beyond it every allocation waits, and loading seems to hang: set only memory.max "
                 "(systemd MemoryMax=, not MemoryHigh=)");
}

Finding Killed(const SystemFiles& files) {
  const int64_t kills = OwnField(files, "memory", "memory.events", "oom_kill").value_or(0);
  if (kills == 0) return Good("no process was ended for want of memory");
  return Warning(Printf("the kernel ended %lld processes here for want of memory",
                        static_cast<long long>(kills)),
                 "raise the limit on memory, use a smaller model, or lower serve --kv-memory");
}

Finding Tasks(const SystemFiles& files) {
  std::optional<int64_t> least;
  for (const std::string& text : files.CgroupTexts("pids", "pids.max")) {
    const std::optional<int64_t> each = LeadingNumber(text);
    if (each) least = std::min(least.value_or(*each), *each);
  }
  if (!least) return Good("no limit on threads");
  const std::string found = Printf("at most %lld threads", static_cast<long long>(*least));
  if (*least >= 128) return Good(found);
  return Warning(found,
                 "Hearth may fail to start its threads: raise it (docker --pids-limit, "
                 "systemd TasksMax=)");
}

}  // namespace

void AddCgroupChecks(const SystemFiles& files, std::vector<Check>& checks) {
  const auto add = [&](const char* name, Finding (*look)(const SystemFiles&)) {
    checks.push_back({name, [&files, look] { return look(files); }});
  };
  add("cgroup.quota", Quota);
  add("cgroup.throttled", Throttled);
  add("cgroup.memory", MemoryLimitOf);
  add("cgroup.memory-high", MemoryHigh);
  add("cgroup.killed", Killed);
  add("cgroup.threads", Tasks);
}

}  // namespace hearth
