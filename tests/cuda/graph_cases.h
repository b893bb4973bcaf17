// SPDX-License-Identifier: Apache-2.0
// Steps of the CUDA backend that come again as graphs: whatever changes between two of one shape,
// the bits are the CPU's. Shared by its tests and those of planted bugs.
#pragma once
#include <dlfcn.h>

#include <utility>
#include <vector>

#include "backend_cases.h"
namespace hearth::cuda {

// Calls of the mock driver so far: "launch" of kernels, "graph" of graphs, or of a kernel by name.
inline long MockCount(const char* what) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  auto* count = reinterpret_cast<long (*)(const char*)>(dlsym(library, "hearth_mock_count"));
  return count == nullptr ? 0 : count(what);
}

// Both backends on one model, and the same blocks in both.
struct TwoBackends {
  explicit TwoBackends(Model from, const RigOptions& rig) : model(std::move(from)) {
    Result<std::unique_ptr<Backend>> opened = OpenMocked(model, rig);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (opened.ok()) gpu = *std::move(opened);
    cpu = *OpenCpu(model, rig);
  }
  const Model model;
  std::unique_ptr<Backend> gpu, cpu;
};

inline void FillBlocks(TwoBackends& both, int blocks, Rng& rng) {
  const KvLayout layout = both.gpu->kv_layout();
  std::vector<std::vector<std::byte>> bytes;
  for (int g = 0; g < layout.num_groups(); ++g) {
    const auto size = static_cast<size_t>(layout.group(g).block_bytes);
    for (int b = 0; b < blocks; ++b) bytes.push_back(RandomBlock(both.model.spec, size, rng));
  }
  StepPlan fill;
  for (int g = 0; g < layout.num_groups(); ++g) {
    for (int b = 0; b < blocks; ++b) {
      fill.copies.push_back(
          {g, static_cast<BlockId>(b), {}, bytes[static_cast<size_t>(g * blocks + b)]});
    }
  }
  ASSERT_TRUE(RunStep(*both.gpu, fill).ok());
  ASSERT_TRUE(RunStep(*both.cpu, fill).ok());
}

// Sequences come, go, and come again behind a prompt that needs larger arrays.
inline void CompareGraphs() {
  RigOptions rig;
  TwoBackends both(LoadedModel(TinyOss()), rig);
  ASSERT_NE(both.gpu, nullptr);
  Rng rng(21);
  const long before = MockCount("graph");
  const int three[] = {6, 6, 3}, prompt[] = {60};
  const auto decode = [&](std::span<const int> lengths) {
    const auto all = Sequences(both.model, lengths, rig.blocks, rng);
    EXPECT_GT(Compare(both.model, *both.gpu, *both.cpu, all, 1, 1), 0);
  };
  decode(three);  // three at a time and two, each as a graph in the end
  const long first = MockCount("graph") - before;
  EXPECT_EQ(first, 4);
  decode(three);  // the same shapes with other tokens, blocks and angles: graphs from the start
  EXPECT_EQ(MockCount("graph") - before - first, 6);
  const auto all = Sequences(both.model, prompt, rig.blocks, rng);
  EXPECT_GT(Compare(both.model, *both.gpu, *both.cpu, all, 60, 1), 0);
  decode(three);
  EXPECT_EQ(MockCount("graph") - before - first - 6, 4);
}

// A context that grows from one span to more.
inline void CompareGraphsOfSpans() {
  RigOptions rig;
  rig.max_step_tokens = 5;
  rig.blocks = 80;
  Model model = LoadedModel(TinyOss());
  model.spec.max_context = 2048;
  TwoBackends both(std::move(model), rig);
  ASSERT_NE(both.gpu, nullptr);
  Rng rng(22);
  FillBlocks(both, rig.blocks, rng);
  for (const int start : {252, 509}) {
    const int lengths[] = {start + 9, 41};
    std::vector<Running> all = Sequences(both.model, lengths, rig.blocks, rng);
    all[0].num_computed = start;
    all[1].num_computed = 41 - 9;
    const long before = MockCount("graph");
    EXPECT_GT(Compare(both.model, *both.gpu, *both.cpu, all, 1, 1), 0);
    EXPECT_GT(MockCount("graph"), before + 3);
  }
}

// The same sequences, asked for other results from step to step.
inline void CompareGraphsOfAsks() {
  RigOptions rig;
  TwoBackends both(LoadedModel(TinyOss()), rig);
  ASSERT_NE(both.gpu, nullptr);
  Rng rng(23);
  const int lengths[] = {14, 14};
  std::vector<Running> all = Sequences(both.model, lengths, rig.blocks, rng);
  using Kind = RowAsk::Kind;
  const std::vector<std::vector<RowAsk>> asks = {
      {}, {{Kind::kToken}, {Kind::kToken}}, {{Kind::kTop, 5}, {Kind::kLogits}}};
  const long before = MockCount("graph");
  for (size_t step = 0; step < 14; ++step) {
    StepPlan plan = NextStep(all, 1, 1);
    plan.asks = asks[step % asks.size()];
    auto want = RunStep(*both.cpu, plan);
    auto got = RunStep(*both.gpu, plan);
    ASSERT_TRUE(want.ok() && got.ok()) << got.status().message();
    for (size_t row = 0; row < want->size(); ++row) {
      const RowResult &one = (*want)[row], &other = (*got)[row];
      EXPECT_EQ(one.token, other.token) << step;
      ASSERT_EQ(one.logits.size(), other.logits.size());
      EXPECT_EQ(std::memcmp(one.logits.data(), other.logits.data(), one.logits.size_bytes()), 0);
      ASSERT_EQ(one.top.size(), other.top.size());
      for (size_t i = 0; i < one.top.size(); ++i) EXPECT_EQ(one.top[i].token, other.top[i].token);
    }
  }
  EXPECT_EQ(MockCount("graph") - before, 14 - 3);
}

}  // namespace hearth::cuda
