// SPDX-License-Identifier: Apache-2.0
// Profiles of real steps on small models: the phases add up, the work is counted, no bit changes.
#include "bench/phases.h"

#include <gmock/gmock.h>

#include <chrono>

#include "bench/output.h"
#include "cpu/cpu_backend.h"
#include "testing/data.h"
#include "testing/loaded_model.h"

namespace hearth {
namespace {

Model Fixture(const std::string& family) {
  return testing::LoadedModel(
      testing::RepoPath("tests/fixtures/families/" + family + "/model.gguf"));
}

struct Steps {
  std::vector<float> logits;  // of all steps
  double seconds = 0;
  int num_steps = 0;
};

// A prompt of 20 tokens in two steps, then five more tokens one by one.
Steps RunSteps(const Model& model, PhaseTotals* phases) {
  BackendOptions options;
  options.num_threads = 2;
  options.phases = phases;
  Result<BackendPlan> plan_of_it = CpuBackends().Plan(model, options);
  HEARTH_CHECK(plan_of_it.ok());
  SetBlocks(plan_of_it->kv, 4);
  auto backend = CpuBackends().Open(model, *plan_of_it);
  HEARTH_CHECK(backend.ok());
  const std::vector<BlockTable> tables(plan_of_it->kv.groups.size(),
                                       {BlockId{0}, BlockId{1}, BlockId{2}, BlockId{3}});
  Steps steps;
  int position = 0;
  for (const int count : {12, 8, 1, 1, 1, 1, 1}) {
    StepPlan plan;
    for (int i = 0; i < count; ++i) {
      plan.tokens.push_back(static_cast<Token>((7 * (position + i) + 3) % model.spec.vocab_size));
    }
    plan.slices.push_back(
        {.count = count, .num_computed = position, .tables = tables, .num_rows = 1});
    plan.num_rows = 1;
    const auto start = std::chrono::steady_clock::now();
    auto rows = RunStep(**backend, plan);
    HEARTH_CHECK(rows.ok());
    steps.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    steps.logits.insert(steps.logits.end(), (*rows)[0].logits.begin(), (*rows)[0].logits.end());
    position += count;
    ++steps.num_steps;
  }
  return steps;
}

TEST(BenchPhases, PhasesOfRealStepsAddUp) {
  for (const char* family : {"gpt-oss", "llama-tied", "qwen3moe"}) {
    const Model model = Fixture(family);
    PhaseTotals totals;
    const Steps steps = RunSteps(model, &totals);
    EXPECT_EQ(totals.steps, steps.num_steps);
    const double sum = totals.sum().seconds;
    EXPECT_LE(sum, steps.seconds) << family;
    EXPECT_GT(sum, 0.5 * steps.seconds) << family << ": checking plans is not half a step";
    for (size_t i = 0; i < kNumPhases; ++i) {
      const bool exists =
          static_cast<StepPhase>(i) != StepPhase::kRouter || model.spec.n_experts > 0;
      EXPECT_EQ(totals.phases[i].seconds > 0, exists) << family << " phase " << i;
      EXPECT_LE(totals.phases[i].waiting, totals.phases[i].seconds) << family << " phase " << i;
    }
  }
}

TEST(BenchPhases, ProfilingChangesNoBit) {
  for (const char* family : {"gpt-oss", "llama-tied", "qwen3moe"}) {
    const Model model = Fixture(family);
    PhaseTotals totals;
    EXPECT_EQ(RunSteps(model, &totals).logits, RunSteps(model, nullptr).logits) << family;
  }
}

// Five steps of one token choose exactly the active experts; the longer two anything up to all.
TEST(BenchPhases, CountsDistinctExperts) {
  const Model model = Fixture("gpt-oss");
  PhaseTotals totals;
  RunSteps(model, &totals);
  ASSERT_EQ(totals.experts_read.size(), model.spec.layers.size());
  for (const int64_t read : totals.experts_read) {
    EXPECT_GE(read, 7 * model.spec.n_active_experts);
    EXPECT_LE(read, 5 * model.spec.n_active_experts + 2 * model.spec.n_experts);
  }
  const Model dense = Fixture("llama-tied");
  PhaseTotals of_dense;
  RunSteps(dense, &of_dense);
  EXPECT_THAT(of_dense.experts_read, ::testing::Each(7));
}

const KvLayout kKv{
    .groups = {{.window = 0, .block_bytes = 40 * 16}, {.window = 8, .block_bytes = 24 * 16}}};

TEST(BenchPhases, WorkIsSplitByPhase) {
  const Model model = Fixture("gpt-oss");
  const WorkModel work(model);
  const BenchCase decode{BenchKind::kDecode, 1, 9, 1};
  const PhaseWork split = work.ByPhase(decode, kKv, 512);
  double projections = 0, router = 0;
  for (const LayerWeights& layer : model.layers) {
    for (const MatView* weight : {&layer.q, &layer.q_bias, &layer.k, &layer.k_bias, &layer.v,
                                  &layer.v_bias, &layer.attn_out, &layer.out_bias}) {
      projections += static_cast<double>(BytesOf(*weight));
    }
    router += static_cast<double>(BytesOf(layer.router) + BytesOf(layer.router_bias));
  }
  EXPECT_DOUBLE_EQ(split[StepPhase::kProjections].bytes, projections);
  EXPECT_DOUBLE_EQ(split[StepPhase::kRouter].bytes, router);
  EXPECT_DOUBLE_EQ(split[StepPhase::kHead].bytes, static_cast<double>(BytesOf(model.head)));
  EXPECT_DOUBLE_EQ(split[StepPhase::kAttention].bytes, 10 * 40 + 9 * 24);
  // One token reads exactly its active experts: the expected bytes are the counted ones.
  const std::vector<int64_t> active(model.layers.size(), model.spec.n_active_experts);
  EXPECT_NEAR(work.ExpertBytes(active), split[StepPhase::kFeedForward].bytes, 1e-6);
  const std::vector<int64_t> twice(model.layers.size(), 2 * model.spec.n_active_experts);
  EXPECT_NEAR(work.ExpertBytes(twice), 2 * split[StepPhase::kFeedForward].bytes, 1e-6);
}

// Two steps of a second each: half of it in the experts, half of that waiting; a quarter of a
// second alone.
Measurement Profiled(const WorkModel& model, bool has_router) {
  PhaseTotals totals;
  totals.steps = 2;
  totals[StepPhase::kFeedForward] = {1.0, 0.5, 0.0};
  totals[StepPhase::kSmall] = {1.0, 0.0, 0.25};
  if (has_router) totals.experts_read = {4, 4};
  Measurement m;
  m.what = {BenchKind::kDecode, 1, 0, 2};
  m.work = model.Of(m.what, kKv, 512);
  m.seconds.all.push_back({2.0, 0});
  m.profile = ProfileOf(totals, model.ByPhase(m.what, kKv, 512), model);
  return m;
}

BenchRecord RecordOf(Measurement m) {
  BenchRecord record;
  record.rounds = 1;
  for (const char* name : {"plain read", "stream read", "VNNI", "AMX"}) {
    record.rooflines.push_back({name, "B/s", {.all = {{2e9, 0}}, .less_is_better = false}, false});
  }
  record.model.emplace();
  record.model->measurements.push_back(std::move(m));
  return record;
}

TEST(BenchPhases, ShownAsTableAndJson) {
  const WorkModel work(Fixture("gpt-oss"));
  const BenchRecord record = RecordOf(Profiled(work, true));
  const std::string table = BenchTable(record);
  EXPECT_THAT(table, ::testing::ContainsRegex("decode 1 +ms/step +of step +waiting +GB/s"));
  EXPECT_THAT(table, ::testing::ContainsRegex("experts +500.000 +50 % +50 % +[0-9.]+ +[0-9]+ %"));
  EXPECT_THAT(table, ::testing::ContainsRegex("small operations +500.000 +50 % +0 % +- +- +- +-"));
  EXPECT_THAT(table, ::testing::ContainsRegex("step +1000.000 +100 % +25 %"));
  const Json json = BenchJson(record);
  const Json& profile = *(*json.Find("measurements")->array())[0].Find("profile");
  EXPECT_EQ(profile.Find("steps")->number(), 2);
  EXPECT_EQ(profile.Find("seconds")->number(), 2.0);
  EXPECT_EQ(profile.Find("waiting_seconds")->number(), 0.5);
  EXPECT_EQ(profile.Find("alone_seconds")->number(), 0.25);
  const JsonArray& phases = *profile.Find("phases")->array();
  ASSERT_EQ(phases.size(), 6u);
  EXPECT_EQ(*phases[3].Find("name")->string(), "experts");
  EXPECT_EQ(phases[3].Find("seconds")->number(), 1.0);
  EXPECT_EQ(phases[3].Find("bytes")->number(), work.ExpertBytes(std::vector<int64_t>{4, 4}));
  EXPECT_THAT(BenchPage(record), ::testing::HasSubstr("<td>decode 1: experts</td>"));
}

TEST(BenchPage, EveryPictureSaysMachineDateAndDirection) {
  const WorkModel work(Fixture("gpt-oss"));
  BenchRecord record = RecordOf(Profiled(work, true));
  record.processor = "a processor";
  record.isa = "avx2";
  record.num_threads = 3;
  record.date = "2026-11-16";
  const std::string page = BenchPage(record);
  const auto count = [&page](std::string_view what) {
    size_t found = 0;
    for (size_t at = page.find(what); at != page.npos; at = page.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<svg"), 3u);
  EXPECT_EQ(count(">a processor, avx2, 3 threads, 2026-11-16</text>"), 3u);
  EXPECT_EQ(count(">higher is better</text>"), 3u);
}

TEST(BenchPhases, DenseModelsHaveAFeedForwardAndNoRouter) {
  const Model model = Fixture("llama-tied");
  const Measurement m = Profiled(WorkModel(model), false);
  std::vector<std::string> names;
  for (const PhaseFigure& phase : m.profile->phases) names.push_back(phase.name);
  EXPECT_THAT(names, ::testing::ElementsAre("projections", "attention", "feed-forward", "head",
                                            "small operations"));
}

}  // namespace
}  // namespace hearth
