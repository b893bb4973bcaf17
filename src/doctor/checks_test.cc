// SPDX-License-Identifier: Apache-2.0
// Every check on a machine on which nothing is wrong, and on one on which one thing is.
#include "doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "doctor/memory_modules.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using ::testing::HasSubstr;

using Files = std::map<std::string, std::string>;

std::string Little(unsigned value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// A structure of type 17 as firmware writes it since version 2.7.
std::string Module(unsigned mebibytes, unsigned rated, unsigned configured) {
  std::string body = std::string(8, '\0') + Little(mebibytes, 2) +
                     std::string(2 + 1 + 1 + 1 + 2, '\1') + Little(rated, 2) +
                     std::string(5, '\0') + Little(0, 4) + Little(configured, 2);
  return Little(17, 1) + Little(static_cast<unsigned>(body.size() + 4), 1) + Little(1, 2) + body +
         "A1" + std::string(2, '\0');
}

Files GoodMachine() {
  Files files = {
      {"/proc/cpuinfo",
       "processor\t: 0\nflags\t\t: fpu avx2 fma f16c avx512_vnni avx512vbmi "
       "amx_int8\n"},
      {"/proc/stat", "cpu  900 0 50 9000 10 0 5 20 0 0\ncpu0 1 2 3\n"},
      {"/proc/loadavg", "0.12 0.30 0.40 1/200 4242\n"},
      {"/proc/self/status", "Name:\thearth\nCpus_allowed_list:\t0-3\n"},
      {"/proc/self/cgroup", "0::/box\n"},
      {"/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
      {"/proc/self/limits",
       "Limit                     Soft Limit           Hard Limit           Units\n"
       "Max file size             unlimited            unlimited            bytes\n"
       "Max processes             63000                63000                processes\n"
       "Max open files            1024                 1048576              files\n"
       "Max address space         unlimited            unlimited            bytes\n"},
      {"/proc/meminfo",
       "MemTotal:       16384000 kB\nMemAvailable:   12000000 kB\n"
       "SwapTotal:  2000000 kB\nSwapFree:   2000000 kB\n"
       "CommitLimit:  9000000 kB\nCommitted_AS: 8000000 kB\n"},
      {"/proc/sys/vm/overcommit_memory", "0\n"},
      {"/proc/sys/vm/zone_reclaim_mode", "0\n"},
      {"/proc/sys/kernel/numa_balancing", "1\n"},
      {"/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"},
      {"/proc/sys/kernel/yama/ptrace_scope", "1\n"},
      {"/proc/sys/net/core/somaxconn", "4096\n"},
      {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
      {"/sys/kernel/security/lsm", "lockdown,capability,landlock,yama\n"},
      {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"},
      {"/sys/devices/system/cpu/online", "0-3\n"},
      {"/sys/devices/system/cpu/offline", "\n"},
      {"/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"},
      {"/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       16384000 kB\n"},
      {"/sys/fs/cgroup/box/cpu.max", "max 100000\n"},
      {"/sys/fs/cgroup/box/cpu.stat", "usage_usec 5\nnr_periods 0\nnr_throttled 0\n"},
      {"/sys/fs/cgroup/box/memory.max", "max\n"},
      {"/sys/fs/cgroup/box/memory.current", "1000000\n"},
      {"/sys/fs/cgroup/box/memory.high", "max\n"},
      {"/sys/fs/cgroup/box/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"},
      {"/sys/fs/cgroup/box/pids.max", "max\n"},
      {"/sys/firmware/dmi/tables/DMI", Module(8192, 5600, 5600) + Module(8192, 5600, 5600)},
  };
  for (int i = 0; i < 4; ++i) {
    const std::string cpu = "/sys/devices/system/cpu/cpu" + std::to_string(i);
    files[cpu + "/cpufreq/scaling_driver"] = "acpi-cpufreq\n";
    files[cpu + "/cpufreq/scaling_governor"] = "schedutil\n";
    files[cpu + "/cpufreq/scaling_max_freq"] = "4500000\n";
    files[cpu + "/cpufreq/cpuinfo_max_freq"] = "4500000\n";
    files[cpu + "/thermal_throttle/core_throttle_count"] = "0\n";
    files[cpu + "/thermal_throttle/package_throttle_count"] = "0\n";
  }
  return files;
}

class FakeMachine {
 public:
  explicit FakeMachine(const Files& files) {
    for (const auto& [path, content] : files) {
      dir_.Write(path.substr(1), content);
    }
    AddProcessorChecks(files_, checks_);
    AddMemoryChecks(files_, checks_);
    AddModuleChecks(files_, checks_);
    AddCgroupChecks(files_, checks_);
    AddKernelChecks(files_, checks_);
  }
  std::vector<NamedFinding> Examined() const { return Examine(checks_); }
  Finding Of(const std::string& name) const {
    for (const Check& check : checks_) {
      if (check.name == name) return check.look();
    }
    ADD_FAILURE() << "no check " << name;
    return {};
  }

 private:
  testing::TempDir dir_;
  SystemFiles files_{dir_.path()};
  std::vector<Check> checks_;
};

// What breaks a check, and what it must then say.
struct Broken {
  std::string check, path, content;
  Verdict verdict;
  std::string found, advice;
};

constexpr auto kNote = Verdict::kNote, kWarning = Verdict::kWarning, kFault = Verdict::kFault;

std::vector<Broken> BrokenHardware() {
  const std::string cpu0 = "/sys/devices/system/cpu/cpu0/";
  return {
      {"processor.instructions", "/proc/cpuinfo", "flags : fpu sse2 avx\n", kFault, "avx2",
       "-cpu host"},
      {"processor.governor", cpu0 + "cpufreq/scaling_governor", "powersave", kWarning,
       "1 of 4 processors", "cpupower"},
      {"processor.clock-cap", cpu0 + "cpufreq/scaling_max_freq", "2000000", kWarning,
       "2.0 of 4.5 GHz", "4.5GHz"},
      {"processor.turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo", "1", kWarning,
       "turbo is off", "no_turbo"},
      {"processor.turbo", "/sys/devices/system/cpu/cpufreq/boost", "0", kWarning, "boost is off",
       "cpufreq/boost"},
      {"processor.heat", cpu0 + "thermal_throttle/package_throttle_count", "17", kWarning,
       "17 times", "cooling"},
      {"processor.offline", "/sys/devices/system/cpu/offline", "4-5,7", kWarning, "3 processors",
       "online"},
      {"processor.stolen", "/proc/stat", "cpu  900 0 50 9000 10 0 5 500 0 0\n", kWarning, "4.8 %",
       "dedicated"},
      {"processor.load", "/proc/loadavg", "3.75 1 1 1/2 3\n", kNote, "3.75 threads", "compete"},
      {"processor.affinity", "/proc/self/status", "Cpus_allowed_list:\t1\n", kNote, "1 of 4",
       "more processors"},
      {"memory.available", "/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 1000000 kB\n",
       kWarning, "1.0 of 7.6 GiB", "smaller model"},
      {"memory.swap", "/proc/meminfo", "SwapTotal: 4194304 kB\nSwapFree: 1048576 kB\n", kWarning,
       "3.0 GiB", "swapoff"},
      {"memory.huge-pages", "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]",
       kWarning, "off", "echo madvise"},
      {"memory.huge-pages", "/sys/kernel/mm/transparent_hugepage/enabled", "", kNote, "no trans",
       "CONFIG"},
      {"memory.overcommit", "/proc/sys/vm/overcommit_memory", "2", kWarning, "1.0 GiB",
       "vm.overcommit_memory=0"},
      {"memory.nodes", "/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 4000000 kB\n",
       kWarning, "3.8 to 15.6", "evenly"},
      {"memory.nodes", "/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 16000000 kB\n",
       kNote, "2 memory nodes", "numactl"},
      {"memory.balancing", "/sys/devices/system/node/node1/meminfo",
       "Node 1 MemTotal: 16000000 kB\n", kWarning, "is on", "kernel.numa_balancing=0"},
      {"memory.zone-reclaim", "/proc/sys/vm/zone_reclaim_mode", "1", kWarning, "is 1",
       "vm.zone_reclaim_mode=0"},
  };
}

std::vector<Broken> BrokenSettings() {
  const std::string box = "/sys/fs/cgroup/box/", dmi = "/sys/firmware/dmi/tables/DMI";
  const auto limit = [](const char* name) { return std::string(name) + "   100  200  units\n"; };
  return {
      {"modules.count", dmi, Module(8192, 5600, 5600), kWarning, "one memory module", "doubles"},
      {"modules.speed", dmi, Module(8192, 6000, 4800) + Module(8192, 6000, 4800), kWarning,
       "4800 of 6000", "XMP"},
      {"modules.alike", dmi, Module(8192, 4800, 4800) + Module(16384, 4800, 4800), kNote, "differ",
       "equal modules"},
      {"cgroup.quota", box + "cpu.max", "50000 100000", kNote, "0.50", "whole processor"},
      {"cgroup.throttled", box + "cpu.stat", "nr_periods 100\nnr_throttled 40\n", kWarning, "40 %",
       "raise the quota"},
      {"cgroup.memory", box + "memory.max", "1050000", kWarning, "limit", "smaller model"},
      {"cgroup.memory-high", "/sys/fs/cgroup/memory.high", "4294967296", kWarning, "4.0 GiB",
       "MemoryMax"},
      {"cgroup.killed", box + "memory.events", "oom 2\noom_kill 3\n", kWarning, "3 processes",
       "kv-memory"},
      {"cgroup.threads", box + "pids.max", "64", kWarning, "64 threads", "TasksMax"},
      {"kernel.version", "/proc/sys/kernel/osrelease", "5.15.0", kWarning, "AMX", "5.16"},
      {"kernel.landlock", "/sys/kernel/security/lsm", "capability,yama", kNote, "not enabled",
       "lsm="},
      {"kernel.clock", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet",
       kWarning, "hpet", "tsc"},
      {"kernel.backlog", "/proc/sys/net/core/somaxconn", "128", kNote, "128 connections",
       "somaxconn=4096"},
      {"kernel.tracing", "/proc/sys/kernel/yama/ptrace_scope", "0", kNote, "same user",
       "ptrace_scope=1"},
      {"limits.open-files", "/proc/self/limits", limit("Max open files"), kWarning, "100 files",
       "ulimit -n"},
      {"limits.address-space", "/proc/self/limits", limit("Max address space"), kWarning,
       "ulimit -v", "cgroup"},
      {"limits.file-size", "/proc/self/limits", limit("Max file size"), kFault, "ulimit -f",
       "unlimited"},
      {"limits.threads", "/proc/self/limits", limit("Max processes"), kWarning, "100 threads",
       "ulimit -u"},
  };
}

std::vector<Broken> AllBroken() {
  std::vector<Broken> all = BrokenHardware();
  for (Broken& each : BrokenSettings()) all.push_back(std::move(each));
  return all;
}

TEST(Checks, NothingIsWrongWithAGoodMachine) {
  const FakeMachine machine(GoodMachine());
  for (const NamedFinding& each : machine.Examined()) {
    EXPECT_EQ(each.finding.verdict, Verdict::kGood) << each.name << ": " << each.finding.found;
    EXPECT_FALSE(each.finding.found.empty()) << each.name;
    EXPECT_TRUE(each.finding.advice.empty()) << each.name;
  }
}

TEST(Checks, WhatIsBrokenIsFoundAndAdvised) {
  for (const Broken& broken : AllBroken()) {
    Files files = GoodMachine();
    files[broken.path] = broken.content;
    const FakeMachine machine(files);
    const Finding finding = machine.Of(broken.check);
    EXPECT_EQ(finding.verdict, broken.verdict) << broken.check << ": " << finding.found;
    EXPECT_THAT(finding.found, HasSubstr(broken.found)) << broken.check;
    EXPECT_THAT(finding.advice, HasSubstr(broken.advice)) << broken.check;
  }
}

TEST(Checks, EachHasATestThatBreaksItsThing) {
  std::set<std::string> broken;
  for (const Broken& each : AllBroken()) broken.insert(each.check);
  for (const NamedFinding& each : FakeMachine(GoodMachine()).Examined()) {
    EXPECT_TRUE(broken.contains(each.name)) << each.name;
  }
}

TEST(Checks, AMachineThatSaysNothingIsNotBlamed) {
  for (const NamedFinding& each : FakeMachine({}).Examined()) {
    EXPECT_LE(each.finding.verdict, Verdict::kNote) << each.name << ": " << each.finding.found;
  }
}

TEST(Checks, WithoutAmxTheFasterNumericsAreNamed) {
  const auto with = [](const std::string& flags) {
    Files files = GoodMachine();
    files["/proc/cpuinfo"] = "flags : avx2 fma f16c " + flags + "\n";
    return FakeMachine(files).Of("processor.instructions").found;
  };
  const std::string faster = "; --numerics fast reads prompts faster here";
  EXPECT_EQ(with(""), "AVX2" + faster);
  EXPECT_EQ(with("avx_vnni"), "AVX2 and AVX-VNNI" + faster);
  EXPECT_EQ(with("avx512_vnni"), "AVX-512 without VBMI" + faster);
  EXPECT_EQ(with("avx512_vnni avx512vbmi"), "AVX-512" + faster);
  EXPECT_EQ(with("avx512_vnni avx512vbmi amx_int8"), "AVX-512 and AMX");
}

TEST(Checks, PowersaveIsFineWhereTheProcessorDecides) {
  Files files = GoodMachine();
  files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"] = "intel_pstate";
  files["/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"] = "powersave";
  EXPECT_EQ(FakeMachine(files).Of("processor.governor").verdict, Verdict::kGood);
}

TEST(Checks, AQuotaIsWellSpentByPartOfAThread) {
  const auto with = [](const char* quota) {
    Files files = GoodMachine();
    files["/sys/fs/cgroup/box/cpu.max"] = quota;
    return FakeMachine(files).Of("cgroup.quota");
  };
  EXPECT_EQ(with("250000 100000").verdict, Verdict::kGood);
  EXPECT_THAT(with("250000 100000").found, HasSubstr("2.50 processors"));
  EXPECT_EQ(with("210000 100000").verdict, Verdict::kNote);
  EXPECT_THAT(with("210000 100000").advice, HasSubstr("2 threads"));
}

TEST(Modules, EmptySlotsAndOddSizes) {
  const std::string table = Module(0, 0, 0) + Module(0xffff, 1, 1) + Module(0x8000 | 2048, 3, 4) +
                            Module(16384, 3200, 2933);
  const std::vector<MemoryModule> modules = ParseModules(table);
  ASSERT_EQ(modules.size(), 2u) << "an empty slot and one of unknown size do not count";
  EXPECT_EQ(modules[0].mebibytes, 2);
  EXPECT_EQ(modules[1].rated_mts, 3200);
  EXPECT_EQ(modules[1].configured_mts, 2933);
  EXPECT_DOUBLE_EQ(ExpectedBytesPerSecond({{1, 4800, 4800}, {1, 4800, 4800}, {1, 4800, 4800}}),
                   2 * 4800e6 * 8);
}

TEST(Modules, CutAnywhereReadsNoFurther) {
  const std::string table = Module(8192, 5600, 5600) + Module(8192, 5600, 5600);
  for (size_t size = 0; size < table.size(); ++size) {
    const std::string cut(table.data(), size);  // its own allocation: sanitizers see the end
    EXPECT_LE(ParseModules(cut).size(), 2u);
  }
  EXPECT_TRUE(ParseModules(std::string(64, '\0')).empty()) << "a length of 0 is no structure";
}

TEST(SystemFiles, ListsOfProcessors) {
  EXPECT_EQ(CountOfList(""), 0);
  EXPECT_EQ(CountOfList("0-3,8"), 5);
  EXPECT_EQ(CountOfList("7"), 1);
  EXPECT_EQ(CountOfList("3-1"), 0);
  EXPECT_EQ(CountOfList("x"), 0);
}

TEST(Findings, TheWorstCounts) {
  EXPECT_EQ(WorstOf({}), Verdict::kGood);
  EXPECT_EQ(WorstOf({{"a", Note("x", "y")}, {"b", Fault("x", "y")}, {"c", Good("x")}}),
            Verdict::kFault);
}

}  // namespace
}  // namespace hearth
