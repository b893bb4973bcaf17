// SPDX-License-Identifier: Apache-2.0
#include "platform/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <utility>
#include <vector>

namespace hearth {
namespace {

TEST(Topology, ThreadsAreBoundByCoresAndQuota) {
  Topology machine;
  machine.num_cpus = 16;
  machine.num_cores = 8;
  EXPECT_EQ(machine.useful_threads(), 8);
  const std::pair<double, int> choices[] = {{0.01, 1}, {0.2, 1},  {0.5, 1}, {1, 1},
                                            {1.2, 1},  {1.25, 2}, {1.5, 2}, {2, 2},
                                            {3.9, 4},  {7.9, 8},  {8.5, 8}, {64, 8}};
  for (const auto& [quota, threads] : choices) {
    machine.cpu_quota = quota;
    EXPECT_EQ(machine.useful_threads(), threads) << quota;
  }
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

}  // namespace
}  // namespace hearth
