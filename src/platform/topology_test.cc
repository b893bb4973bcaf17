// SPDX-License-Identifier: Apache-2.0
#include "platform/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

namespace hearth {
namespace {

TEST(Topology, ThreadsAreBoundByCoresAndQuota) {
  Topology machine;
  machine.num_cpus = 16;
  machine.num_cores = 8;
  EXPECT_EQ(machine.useful_threads(), 8);
  machine.cpu_quota = 3.9;
  EXPECT_EQ(machine.useful_threads(), 3);
  machine.cpu_quota = 0.2;
  EXPECT_EQ(machine.useful_threads(), 1);
  machine.cpu_quota = 1e300;
  EXPECT_EQ(machine.useful_threads(), 8);
}

TEST(Topology, MemoryIsBoundByTheTighterLimit) {
  Topology machine;
  machine.memory_bytes = 1000;
  EXPECT_EQ(machine.usable_memory_bytes(), 1000u);
  machine.memory_limit_bytes = 300;
  EXPECT_EQ(machine.usable_memory_bytes(), 300u);
  machine.memory_limit_bytes = 5000;
  EXPECT_EQ(machine.usable_memory_bytes(), 1000u);
}

TEST(Topology, ThisMachineIsPlausible) {
  const Topology machine = ReadTopology();
  EXPECT_EQ(machine.num_cpus, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GE(machine.num_cores, 1);
  EXPECT_LE(machine.num_cores, machine.num_cpus);
  EXPECT_GE(machine.num_numa_nodes, 1);
  EXPECT_GT(machine.memory_bytes, uint64_t{64} << 20);
  EXPECT_GT(machine.usable_memory_bytes(), 0u);
}

TEST(Topology, KnowsWhatTheAddressSpaceLeaves) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit = before;
  const uint64_t room = uint64_t{256} << 20;
  limit.rlim_cur = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + room;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  const uint64_t usable = ReadTopology().usable_memory_bytes();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LE(usable, room);
  EXPECT_GT(usable, room / 2);
}

TEST(Topology, FollowsTheAffinityMask) {
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(ReadTopology().num_cpus, 1);
    EXPECT_EQ(ReadTopology().num_cores, 1);
    EXPECT_EQ(ReadTopology().useful_threads(), 1);
  }).join();
}

std::vector<CpuPlace> Machine(const std::vector<std::vector<int>>& cores) {
  std::vector<CpuPlace> cpus;
  for (size_t core = 0; core < cores.size(); ++core) {
    for (const int cpu : cores[core]) cpus.push_back({cpu, static_cast<int>(core)});
  }
  return cpus;
}

using Cpus = std::vector<int>;

TEST(WorkerCpus, WithoutSiblingsGoInOrder) {
  const auto machine = Machine({{0}, {1}});
  EXPECT_EQ(WorkerCpus(machine, Cpus{0, 1}, 1), (Cpus{0}));
  EXPECT_EQ(WorkerCpus(machine, Cpus{0, 1}, 2), (Cpus{0, 1}));
}

TEST(WorkerCpus, SiblingsNumberedAfterAllCores) {
  const auto machine = Machine({{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  const Cpus all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(WorkerCpus(machine, all, 2), (Cpus{0, 1}));
  EXPECT_EQ(WorkerCpus(machine, all, 4), (Cpus{0, 1, 2, 3}));
  EXPECT_EQ(WorkerCpus(machine, all, 6), (Cpus{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(WorkerCpus(machine, all, 8), all);
}

TEST(WorkerCpus, SiblingsNumberedSideBySide) {
  const auto machine = Machine({{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  const Cpus all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(WorkerCpus(machine, all, 2), (Cpus{0, 2}));
  EXPECT_EQ(WorkerCpus(machine, all, 4), (Cpus{0, 2, 4, 6}));
  EXPECT_EQ(WorkerCpus(machine, all, 6), (Cpus{0, 2, 4, 6, 1, 3}));
  EXPECT_EQ(WorkerCpus(machine, all, 8), (Cpus{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(WorkerCpus, StayInsideTheMask) {
  const auto after = Machine({{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  EXPECT_EQ(WorkerCpus(after, Cpus{2, 3}, 2), (Cpus{2, 3}));
  // One core whole, one half: the half is used before the whole one's sibling.
  EXPECT_EQ(WorkerCpus(after, Cpus{1, 5, 6}, 2), (Cpus{1, 6}));
  EXPECT_EQ(WorkerCpus(after, Cpus{1, 5, 6}, 3), (Cpus{1, 6, 5}));
  // Only a sibling of the first core is allowed: it is a core like any other.
  EXPECT_EQ(WorkerCpus(after, Cpus{1, 4, 5}, 2), (Cpus{1, 4}));
  const auto beside = Machine({{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  EXPECT_EQ(WorkerCpus(beside, Cpus{1, 2, 3}, 2), (Cpus{1, 2}));
  EXPECT_EQ(WorkerCpus(beside, Cpus{6, 7}, 2), (Cpus{6, 7}));
  EXPECT_EQ(WorkerCpus(beside, Cpus{7, 6, 3, 2}, 4), (Cpus{2, 6, 3, 7})) << "in any order";
}

TEST(WorkerCpus, MoreWorkersThanProcessorsAreNotPlaced) {
  const auto machine = Machine({{0, 1}, {2, 3}});
  EXPECT_EQ(WorkerCpus(machine, Cpus{0, 1, 2, 3}, 5), Cpus());
  EXPECT_EQ(WorkerCpus(machine, Cpus{1, 2}, 3), Cpus());
  EXPECT_EQ(WorkerCpus(machine, Cpus(), 1), Cpus());
}

TEST(WorkerCpus, UnknownProcessorsCountAsCores) {
  EXPECT_EQ(WorkerCpus({}, Cpus{3, 5, 8}, 3), (Cpus{3, 5, 8}));
  EXPECT_EQ(WorkerCpus(Machine({{0, 1}}), Cpus{0, 1, 2}, 3), (Cpus{0, 2, 1}));
}

TEST(WorkerCpus, OnThisMachineTakeOneProcessorACore) {
  const Topology machine = ReadTopology();
  const Cpus allowed = AllowedCpus();
  EXPECT_EQ(static_cast<int>(allowed.size()), machine.num_cpus);
  const Cpus cpus = WorkerCpus(MachineCpus(), allowed, machine.num_cores);
  ASSERT_EQ(static_cast<int>(cpus.size()), machine.num_cores);
  std::set<int> cores;
  for (const CpuPlace& place : MachineCpus()) {
    if (std::find(cpus.begin(), cpus.end(), place.cpu) != cpus.end()) cores.insert(place.core);
  }
  EXPECT_EQ(static_cast<int>(cores.size()), machine.num_cores);
}

}  // namespace
}  // namespace hearth
