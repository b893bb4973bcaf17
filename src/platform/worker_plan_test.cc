// SPDX-License-Identifier: Apache-2.0
#include "platform/worker_plan.h"

#include <gtest/gtest.h>
#include <hwloc.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace hearth {
namespace {

std::vector<CpuPlace> Machine(const std::vector<std::vector<int>>& cores) {
  std::vector<CpuPlace> cpus;
  for (size_t core = 0; core < cores.size(); ++core) {
    for (const int cpu : cores[core]) {
      cpus.push_back({.cpu = cpu, .core = static_cast<int>(core)});
    }
  }
  return cpus;
}

using Cpus = std::vector<int>;

Cpus WorkerCpus(std::span<const CpuPlace> machine, const Cpus& allowed, int num_workers) {
  return PlanWorkers(machine, allowed, num_workers, kNumaOff).cpus;
}

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

// "0-3,8": ascending runs.
std::string Runs(const Cpus& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (end - i > 1) text += "-" + std::to_string(cpus[end - 1]);
    i = end;
  }
  return text;
}

// "0: 0-7 | 1: 8-15": the node's memory and its workers' processors.
std::string TextOf(const WorkerPlan& plan) {
  std::string text;
  for (int k = 0; k < plan.num_nodes(); ++k) {
    const auto at = static_cast<size_t>(k);
    const auto begin = static_cast<size_t>(plan.first[at]);
    const auto end = static_cast<size_t>(plan.first[at + 1]);
    text += k > 0 ? " | " : "";
    text += plan.memory.empty() ? "-: " : std::to_string(plan.memory[at]) + ": ";
    text +=
        plan.cpus.empty()
            ? std::to_string(end - begin) + " unpinned"
            : Runs({plan.cpus.begin() + plan.first[at], plan.cpus.begin() + plan.first[at + 1]});
  }
  return text;
}

Cpus AllOf(const std::vector<CpuPlace>& machine) {
  Cpus all;
  for (const CpuPlace& place : machine) all.push_back(place.cpu);
  return all;
}

struct Golden {
  const char* name;
  const char* machine;  // for hwloc
  int cores;
  const char* plan;  // one worker per core, kNumaAuto
  Cpus slow = {};
};

Cpus From(int begin, int end) {
  Cpus cpus(static_cast<size_t>(end - begin));
  std::iota(cpus.begin(), cpus.end(), begin);
  return cpus;
}

const std::vector<Golden>& Goldens() {
  static const std::vector<Golden> goldens = {
      {"1x8", "package:1 core:8 pu:1", 8, "-: 0-7"},
      {"1x8 with siblings", "package:1 core:8 pu:2", 8, "-: 0,2,4,6,8,10,12,14"},
      {"2x8", "package:2 numa:1 core:8 pu:1", 16, "0: 0-7 | 1: 8-15"},
      {"2x16", "package:2 numa:1 core:16 pu:1", 32, "0: 0-15 | 1: 16-31"},
      {"4x12", "package:4 numa:1 core:12 pu:1", 48, "0: 0-11 | 1: 12-23 | 2: 24-35 | 3: 36-47"},
      {"2 sockets in 2 clusters each", "package:2 group:2 numa:1 core:4 pu:1", 16,
       "0: 0-3 | 1: 4-7 | 2: 8-11 | 3: 12-15"},
      {"hybrid 8P+12E", "package:1 core:20 pu:1", 20, "-: 12-19,0-11", From(0, 12)},
      {"128x2", "package:1 core:128 pu:2", 128, nullptr},
      {"4x192x2", "package:4 numa:1 core:192 pu:2", 768, nullptr},
  };
  return goldens;
}

TEST(WorkerPlan, GoldenMachines) {
  for (const Golden& golden : Goldens()) {
    SCOPED_TRACE(golden.name);
    const std::vector<CpuPlace> machine = DescribedCpus(golden.machine, golden.slow);
    ASSERT_FALSE(machine.empty());
    const WorkerPlan plan = PlanWorkers(machine, AllOf(machine), golden.cores, kNumaAuto);
    if (golden.plan != nullptr) {
      EXPECT_EQ(TextOf(plan), golden.plan);
    }
    // Every core has one worker, on the node beside it.
    std::map<int, CpuPlace> places;
    for (const CpuPlace& place : machine) places[place.cpu] = place;
    std::set<int> cores;
    for (int i = 0; i < plan.size(); ++i) {
      const CpuPlace& place = places[plan.cpus[static_cast<size_t>(i)]];
      EXPECT_TRUE(cores.insert(place.core).second) << "two workers on core " << place.core;
      if (!plan.memory.empty()) {
        EXPECT_EQ(plan.memory[static_cast<size_t>(plan.node_of(i))], place.node);
      }
    }
    EXPECT_EQ(static_cast<int>(cores.size()), golden.cores);
  }
}

// hwloc's one-line descriptions give every node memory, its XML does not have to.
std::vector<CpuPlace> WithoutMemoryOnNode1(const std::string& description) {
  hwloc_topology_t machine = nullptr;
  hwloc_topology_init(&machine);
  hwloc_topology_set_synthetic(machine, description.c_str());
  hwloc_topology_load(machine);
  char* text = nullptr;
  int length = 0;
  hwloc_topology_export_xmlbuffer(machine, &text, &length, 0);
  std::string xml(text);
  hwloc_free_xmlbuffer(machine, text);
  hwloc_topology_destroy(machine);
  const size_t node = xml.find("type=\"NUMANode\" os_index=\"1\"");
  const std::string word = "local_memory=\"";
  const size_t begin = xml.find(word, node) + word.size();
  EXPECT_LT(node, begin);
  xml.replace(begin, xml.find('"', begin) - begin, "0");
  return DescribedCpus(xml);
}

TEST(WorkerPlan, ANodeWithoutMemoryHoldsNoWeights) {
  const auto machine = WithoutMemoryOnNode1("package:2 numa:1 core:8 pu:1");
  ASSERT_EQ(machine.size(), 16u);
  EXPECT_EQ(machine[15].node, 0);
  EXPECT_EQ(TextOf(PlanWorkers(machine, AllOf(machine), 16, kNumaAuto)), "-: 0-15");
  const auto three = WithoutMemoryOnNode1("package:3 numa:1 core:2 pu:1");
  EXPECT_EQ(TextOf(PlanWorkers(three, AllOf(three), 6, kNumaAuto)), "0: 0-3 | 2: 4-5");
}

// Siblings come last, on every node alike.
TEST(WorkerPlan, MoreWorkersThanCoresUseSiblings) {
  const auto machine = DescribedCpus("package:2 numa:1 core:4 pu:2");
  EXPECT_EQ(TextOf(PlanWorkers(machine, AllOf(machine), 8, kNumaAuto)),
            "0: 0,2,4,6 | 1: 8,10,12,14");
  EXPECT_EQ(TextOf(PlanWorkers(machine, AllOf(machine), 12, kNumaAuto)),
            "0: 0,2,4,6,1,3 | 1: 8,10,12,14,9,11");
}

// Slow cores come after fast ones and before the fast ones' siblings.
TEST(WorkerPlan, FastCoresFirst) {
  // Processors 0 and 1 are slow cores without siblings, 2 to 5 two fast ones with.
  std::vector<CpuPlace> machine;
  for (int cpu = 0; cpu < 2; ++cpu) machine.push_back({.cpu = cpu, .core = cpu});
  for (int cpu = 2; cpu < 6; ++cpu) {
    machine.push_back({.cpu = cpu, .core = 1 + cpu / 2, .speed = 1});
  }
  EXPECT_EQ(WorkerCpus(machine, From(0, 6), 2), (Cpus{2, 4}));
  EXPECT_EQ(WorkerCpus(machine, From(0, 6), 4), (Cpus{2, 4, 0, 1}));
  EXPECT_EQ(WorkerCpus(machine, From(0, 6), 6), (Cpus{2, 4, 0, 1, 3, 5}));
}

TEST(WorkerPlan, FewerWorkersAreSpreadOverNodes) {
  const auto machine = DescribedCpus("package:2 numa:1 core:8 pu:1");
  const Cpus all = AllOf(machine);
  EXPECT_EQ(TextOf(PlanWorkers(machine, all, 1, kNumaAuto)), "-: 0");
  EXPECT_EQ(TextOf(PlanWorkers(machine, all, 2, kNumaAuto)), "0: 0 | 1: 8");
  EXPECT_EQ(TextOf(PlanWorkers(machine, all, 6, kNumaAuto)), "0: 0-2 | 1: 8-10");
  EXPECT_EQ(TextOf(PlanWorkers(machine, all, 6, kNumaOff)), "-: 0,8,1,9,2,10");
}

// Offline processors and those outside of a cpuset are not in the mask.
TEST(WorkerPlan, StaysInsideTheMask) {
  const auto machine = DescribedCpus("package:2 numa:1 core:8 pu:1");
  EXPECT_EQ(TextOf(PlanWorkers(machine, From(4, 12), 8, kNumaAuto)), "0: 4-7 | 1: 8-11");
  EXPECT_EQ(TextOf(PlanWorkers(machine, From(6, 16), 10, kNumaAuto)), "0: 6-7 | 1: 8-15");
  EXPECT_EQ(TextOf(PlanWorkers(machine, From(8, 16), 8, kNumaAuto)), "-: 8-15");
  EXPECT_EQ(TextOf(PlanWorkers(machine, From(8, 16), 9, kNumaAuto)), "-: 9 unpinned");
}

TEST(WorkerPlan, ANumberOfNodes) {
  const auto machine = DescribedCpus("package:4 numa:1 core:2 pu:1");
  const Cpus all = AllOf(machine);
  EXPECT_EQ(TextOf(PlanWorkers(machine, all, 8, 2)), "0: 0-1 | 1: 2-3");
  EXPECT_EQ(TextOf(PlanWorkers(machine, all, 8, 4)), "0: 0-1 | 1: 2-3 | 2: 4-5 | 3: 6-7");
  // More than there are: groups without memory of their own, for tests of placement.
  const auto small = DescribedCpus("package:1 core:4 pu:1");
  EXPECT_EQ(TextOf(PlanWorkers(small, AllOf(small), 4, 2)), "-: 0-1 | -: 2-3");
  EXPECT_EQ(TextOf(PlanWorkers(small, AllOf(small), 3, 2)), "-: 0 | -: 1-2");
  EXPECT_EQ(TextOf(PlanWorkers(small, AllOf(small), 1, 2)), "-: 0");
  EXPECT_EQ(TextOf(PlanWorkers(small, AllOf(small), 6, 2)), "-: 3 unpinned | -: 3 unpinned");
}

TEST(WorkerPlan, EdgesCoverAllAndFollowTheWorkers) {
  WorkerPlan plan;
  plan.first = {0, 8, 16};
  EXPECT_EQ(plan.edge(180, 0), 0);
  EXPECT_EQ(plan.edge(180, 1), 90);
  EXPECT_EQ(plan.edge(180, 2), 180);
  EXPECT_EQ(plan.edge(1, 1), 0);
  plan.first = {0, 6, 8};
  EXPECT_EQ(plan.edge(100, 1), 75);
  EXPECT_EQ(plan.node_of(0), 0);
  EXPECT_EQ(plan.node_of(5), 0);
  EXPECT_EQ(plan.node_of(6), 1);
  EXPECT_EQ(plan.node_of(7), 1);
}

TEST(PartlyPaid, IsAFractionOfTheLastWorkerOnOneNode) {
  const std::vector<CpuPlace> machine = DescribedCpus("package:2 core:4 pu:1");
  const auto plan = [&](int workers, int nodes) {
    return PlanWorkers(machine, AllOf(machine), workers, nodes);
  };
  EXPECT_EQ(PartlyPaid(plan(2, kNumaOff), 1.5), 1.5);
  EXPECT_EQ(PartlyPaid(plan(8, kNumaOff), 7.25), 7.25);
  EXPECT_EQ(PartlyPaid(plan(2, kNumaOff), std::nullopt), 0);
  EXPECT_EQ(PartlyPaid(plan(2, kNumaOff), 2), 0);
  EXPECT_EQ(PartlyPaid(plan(2, kNumaOff), 1), 0);  // --threads asks for more than is paid for
  EXPECT_EQ(PartlyPaid(plan(1, kNumaOff), 0.5), 0);
  EXPECT_EQ(PartlyPaid(plan(2, 2), 1.5), 0);
}

}  // namespace
}  // namespace hearth
