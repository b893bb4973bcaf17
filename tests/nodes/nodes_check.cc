// SPDX-License-Identifier: Apache-2.0
// On a machine with several memory nodes: asks the kernel (move_pages) where each page of the
// weights lies, and compares logits of all nodes with those of one, bit for bit.
// nodes_check MODEL LEAST_NODES; exit code 0 only if both are right.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend/backend.h"
#include "cpu/cpu_backend.h"
#include "cpu/packed_model.h"
#include "model/model.h"

namespace hearth {
namespace {

constexpr size_t kPage = 4096;
constexpr double kLeastShare = 0.98;

// Node of each page, or an error number below 0.
std::vector<int> NodesOf(std::span<const std::byte> bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) / kPage * kPage;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size());
  std::vector<void*> pages;
  for (uintptr_t at = begin; at < end; at += kPage) pages.push_back(reinterpret_cast<void*>(at));
  std::vector<int> nodes(pages.size(), -1);
  if (::syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0) != 0) {
    std::perror("move_pages");
    std::exit(1);
  }
  return nodes;
}

bool PagesAreAtHome(const Model& model, ThreadPool& pool) {
  Result<std::unique_ptr<PackedModel>> packed = PackedModel::Make(model, pool, nullptr);
  if (!packed.ok()) {
    std::printf("%s\n", packed.status().message().c_str());
    return false;
  }
  const WorkerPlan& plan = pool.plan();
  const PackedModel::Regions regions = PackedModel::RegionsFor(model, plan);
  int64_t home = 0, all = 0;
  for (size_t k = 0; k + 1 < regions.size(); ++k) {
    const auto begin = static_cast<size_t>(regions[k]), end = static_cast<size_t>(regions[k + 1]);
    int64_t here = 0, touched = 0;
    for (const int node : NodesOf((*packed)->weights().subspan(begin, end - begin))) {
      if (node < 0) continue;  // never touched: rounding up to a huge page
      ++touched;
      here += node == plan.memory[k] ? 1 : 0;
    }
    std::printf("node %d: %lld of %lld pages of its weights are there\n", plan.memory[k],
                static_cast<long long>(here), static_cast<long long>(touched));
    home += here;
    all += touched;
  }
  const double share = all > 0 ? static_cast<double>(home) / static_cast<double>(all) : 0;
  std::printf("%.2f %% of %.1f MiB on their node\n", 100 * share,
              static_cast<double>(all) * kPage / (1 << 20));
  return share >= kLeastShare;
}

std::vector<float> LogitsWith(const Model& model, int nodes, int threads) {
  CpuOptions options;
  options.isa = BestIsa();
  options.num_threads = threads;
  options.numa_nodes = nodes;
  options.kv_blocks = {2};
  Result<std::unique_ptr<Backend>> backend = MakeCpuBackend(model, options);
  if (!backend.ok()) return {};
  const std::vector<BlockTable> tables((*backend)->kv_layout().groups.size(),
                                       BlockTable{BlockId{0}, BlockId{1}});
  StepPlan plan;
  for (int t = 0; t < 20; ++t) plan.tokens.push_back(1 + t * 7 % 90);
  SeqSlice slice;
  slice.count = slice.num_rows = plan.num_rows = 20;
  slice.tables = tables;
  plan.slices.push_back(slice);
  Result<std::span<const RowResult>> rows = RunStep(**backend, plan);
  std::vector<float> out;
  if (!rows.ok()) return out;
  for (const RowResult& row : *rows) out.insert(out.end(), row.logits.begin(), row.logits.end());
  return out;
}

int Main(const char* path, int least_nodes) {
  Result<std::unique_ptr<WeightFile>> file = WeightFile::Open(path);
  if (!file.ok()) return std::printf("%s\n", file.status().message().c_str());
  Result<Model> model = LoadModel(*std::move(file));
  if (!model.ok()) return std::printf("%s\n", model.status().message().c_str());
  const int threads = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  ThreadPool pool(PlanWorkersHere(threads, kNumaAuto));
  std::printf("%d threads, %d memory nodes, level %s\n", threads, pool.plan().num_nodes(),
              NameOf(BestIsa()));
  if (static_cast<int>(pool.plan().memory.size()) < least_nodes) {
    return std::printf("expected %d memory nodes to be bound to\n", least_nodes);
  }
  if (!PagesAreAtHome(*model, pool)) return 1;
  const std::vector<float> one = LogitsWith(*model, kNumaOff, 1);
  const std::vector<float> all = LogitsWith(*model, kNumaAuto, threads);
  const bool same = !one.empty() && one.size() == all.size() &&
                    std::memcmp(one.data(), all.data(), one.size() * sizeof(float)) == 0;
  std::printf("%zu logits of all nodes and of one: %s\n", one.size(),
              same ? "the same bits" : "DIFFERENT");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  if (argc != 3) return std::printf("usage: nodes_check MODEL LEAST_NODES\n");
  return hearth::Main(argv[1], std::atoi(argv[2])) == 0 ? 0 : 1;
}
