// SPDX-License-Identifier: Apache-2.0
#include "platform/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

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
