// SPDX-License-Identifier: Apache-2.0
#include "platform/worker_plan.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "base/check.h"

namespace hearth {
namespace {

// A processor that a worker may have, in the order in which they are given away.
struct Seat {
  int sibling;  // how many processors of its core come before it
  int slowness;
  int place;  // of its core among those of its node
  int node, cpu;
  auto operator<=>(const Seat&) const = default;
};

std::vector<Seat> SeatsOf(std::span<const CpuPlace> machine, std::span<const int> allowed) {
  std::map<int, CpuPlace> known;
  int fastest = 0;
  for (const CpuPlace& place : machine) {
    known[place.cpu] = place;
    fastest = std::max(fastest, place.speed);
  }
  std::vector<int> ascending(allowed.begin(), allowed.end());
  std::sort(ascending.begin(), ascending.end());
  struct Core {
    int place, num_seated;
  };
  std::map<int, Core> cores;
  std::map<int, int> cores_of_node;
  std::vector<Seat> seats;
  for (const int cpu : ascending) {
    const auto found = known.find(cpu);
    // No core of the machine has a negative number, so an unknown processor's is its own.
    const CpuPlace at = found == known.end()
                            ? CpuPlace{.cpu = cpu, .core = -1 - cpu, .speed = fastest}
                            : found->second;
    const auto [core, is_new] = cores.try_emplace(at.core, Core{cores_of_node[at.node], 0});
    if (is_new) ++cores_of_node[at.node];
    seats.push_back(
        {core->second.num_seated++, fastest - at.speed, core->second.place, at.node, cpu});
  }
  return seats;
}

// Keeps the seats of the first `most` nodes.
void KeepNodes(std::vector<Seat>& seats, int most) {
  std::set<int> nodes;
  for (const Seat& seat : seats) nodes.insert(seat.node);
  while (static_cast<int>(nodes.size()) > most) nodes.erase(std::prev(nodes.end()));
  std::erase_if(seats, [&](const Seat& seat) { return !nodes.contains(seat.node); });
}

int NodesOf(std::span<const Seat> seats) {
  std::set<int> nodes;
  for (const Seat& seat : seats) nodes.insert(seat.node);
  return static_cast<int>(nodes.size());
}

// Workers dealt evenly into groups, for a plan without real nodes.
WorkerPlan Even(std::vector<int> cpus, int num_workers, int groups) {
  WorkerPlan plan;
  plan.cpus = std::move(cpus);
  groups = std::clamp(groups, 1, num_workers);
  for (int k = 0; k <= groups; ++k) plan.first.push_back(num_workers * k / groups);
  return plan;
}

}  // namespace

int WorkerPlan::node_of(int worker) const {
  return static_cast<int>(std::upper_bound(first.begin(), first.end(), worker) - first.begin()) - 1;
}

int WorkerPlan::edge(int n, int node) const {
  return static_cast<int>(int64_t{n} * first[static_cast<size_t>(node)] / size());
}

WorkerPlan PlanWorkers(std::span<const CpuPlace> machine, std::span<const int> allowed,
                       int num_workers, int nodes) {
  HEARTH_CHECK(num_workers >= 1 && nodes >= 0);
  std::vector<Seat> seats = SeatsOf(machine, allowed);
  const int real = NodesOf(seats);
  if (num_workers > static_cast<int>(seats.size()))
    return Even({}, num_workers, std::max(nodes, 1));
  if (nodes == kNumaAuto) nodes = std::max(real, 1);
  nodes = std::min(nodes, num_workers);
  if (nodes <= real && nodes != kNumaOff) KeepNodes(seats, nodes);
  num_workers = std::min(num_workers, static_cast<int>(seats.size()));
  std::sort(seats.begin(), seats.end());
  seats.resize(static_cast<size_t>(num_workers));
  const bool binds = nodes > 1 && nodes <= real;
  if (binds) {
    std::stable_sort(seats.begin(), seats.end(),
                     [](const Seat& a, const Seat& b) { return a.node < b.node; });
  }
  std::vector<int> cpus;
  for (const Seat& seat : seats) cpus.push_back(seat.cpu);
  if (!binds) return Even(std::move(cpus), num_workers, nodes);
  WorkerPlan plan;
  plan.cpus = std::move(cpus);
  for (int i = 0; i < num_workers; ++i) {
    const int node = seats[static_cast<size_t>(i)].node;
    if (!plan.memory.empty() && plan.memory.back() == node) continue;
    plan.memory.push_back(node);
    plan.first.push_back(i);
  }
  plan.first.push_back(num_workers);
  return plan;
}

double PartlyPaid(const WorkerPlan& plan, std::optional<double> quota) {
  const bool is_part = quota && *quota > plan.size() - 1 && *quota < plan.size();
  return is_part && plan.size() > 1 && plan.num_nodes() == 1 ? *quota : 0;
}

WorkerPlan PlanWorkersHere(int num_workers, int nodes) {
  WorkerPlan plan = PlanWorkers(MachineCpus(), AllowedCpus(), num_workers, nodes);
  if (num_workers > 1) plan.quota = PartlyPaid(plan, ReadCpuQuota());
  return plan;
}

}  // namespace hearth
