// SPDX-License-Identifier: Apache-2.0
// What Linux control groups say, as pure functions over the texts of their files; topology.cc reads
// the files. Whatever cannot be understood counts as "no limit": a wrong guess must not stop a
// start.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
namespace hearth {

// Where the limits of one controller are written for this process.
struct CgroupPlace {
  bool unified = false;              // version 2's file names, else version 1's
  std::vector<std::string> folders;  // our group first, then its parents up to the mount point
};

// `self` is the text of /proc/self/cgroup, `mounts` that of /proc/self/mountinfo. A controller that
// version 1 holds is looked up there even if version 2 is mounted as well (hybrid systems).
std::optional<CgroupPlace> FindCgroup(std::string_view self, std::string_view mounts,
                                      std::string_view controller);

// CPUs' worth of time: cpu.max of version 2 ("150000 100000" is 1.5, "max 100000" none), and
// cpu.cfs_quota_us with cpu.cfs_period_us of version 1 (quota -1: none).
std::optional<double> CpuQuotaV2(std::string_view cpu_max);
std::optional<double> CpuQuotaV1(std::string_view quota, std::string_view period);

// The files that limit memory, of our group and its parents. memory.high counts: nothing is ended
// there, but beyond it every allocation waits.
std::vector<std::string> MemoryLimitFiles(const CgroupPlace& memory);
// What one of them says. Version 1 spells "none" as a huge number.
std::optional<uint64_t> MemoryLimit(std::string_view text);

}  // namespace hearth
