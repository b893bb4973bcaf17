// SPDX-License-Identifier: Apache-2.0
#include "plan/times.h"

#include <gtest/gtest.h>

#include "plan/sampled_layers.h"

namespace hearth {
namespace {

constexpr double kStream = 40e9, kInt8 = 8e12;

void Set(CaseTime& time, StepPhase phase, double seconds, double bytes, double flops) {
  time.seconds[static_cast<size_t>(phase)] = seconds;
  time.work[phase] = {bytes, flops};
}

// A model of 4 GB: one user reads it in 110 ms, prompts take 1 ms a token.
ModelTimes Times() {
  ModelTimes times;
  times.stream_here = kStream;
  times.int8_here = kInt8;
  const auto decode = [](int users, double products_s) {
    CaseTime time{{BenchKind::kDecode, users, 0, 1}, {}, {}};
    Set(time, StepPhase::kFeedForward, products_s, 4e9, users * 8e9);
    Set(time, StepPhase::kSmall, 0.01, 0, 0);
    return time;
  };
  times.decode = {decode(1, 0.11), decode(8, 0.11), decode(32, 0.2)};
  times.deep = decode(1, 0.11);
  times.deep->what.depth = 1000;
  Set(*times.deep, StepPhase::kAttention, 0.02, 1e6, 1e9);
  times.prefill = CaseTime{{BenchKind::kPrefill, 1, 0, 512}, {}, {}};
  Set(times.prefill, StepPhase::kFeedForward, 0.5, 4e9, 512 * 8e9);
  Set(times.prefill, StepPhase::kAttention, 0.01, 1e6, 1e9);
  Set(times.prefill, StepPhase::kHead, 0.005, 1e8, 1e8);
  Set(times.prefill, StepPhase::kSmall, 0.02, 0, 0);
  return times;
}

MachineRates Here() { return {kStream, kInt8, 2}; }

TEST(PlanTimes, PartsGrowWithTheirWork) {
  PhaseWork part, whole;
  part[StepPhase::kProjections] = {10, 100};
  whole[StepPhase::kProjections] = {60, 400};
  part[StepPhase::kAttention] = {10, 100};
  whole[StepPhase::kAttention] = {60, 400};
  part[StepPhase::kHead] = whole[StepPhase::kHead] = {5, 5};
  PhaseSeconds seconds;
  seconds.fill(1);
  const CaseTime time = Whole({}, seconds, part, whole, 8);
  EXPECT_DOUBLE_EQ(time.seconds[static_cast<size_t>(StepPhase::kProjections)], 6);  // by bytes
  EXPECT_DOUBLE_EQ(time.seconds[static_cast<size_t>(StepPhase::kAttention)], 4);    // by arithmetic
  EXPECT_DOUBLE_EQ(time.seconds[static_cast<size_t>(StepPhase::kHead)], 1);
  EXPECT_DOUBLE_EQ(time.seconds[static_cast<size_t>(StepPhase::kSmall)], 8);
  EXPECT_DOUBLE_EQ(time.seconds[static_cast<size_t>(StepPhase::kRouter)], 1);  // there is none
}

TEST(PlanTimes, StepsLieBetweenTheirNeighbours) {
  const ModelTimes times = Times();
  EXPECT_DOUBLE_EQ(times.StepSeconds(1, 0), 0.12);
  EXPECT_DOUBLE_EQ(times.StepSeconds(8, 0), 0.12);
  EXPECT_DOUBLE_EQ(times.StepSeconds(20, 0), 0.165);
  EXPECT_DOUBLE_EQ(times.StepSeconds(56, 0), 0.30);  // the last slope goes on
  EXPECT_NEAR(times.SecondsPerPosition(), 2e-5, 1e-12);
  EXPECT_NEAR(times.StepSeconds(8, 500), 0.12 + 8 * 500 * 2e-5, 1e-9);
  EXPECT_NEAR(times.DecodeRate(32, 0), 32 / 0.21, 1e-9);
}

TEST(PlanTimes, LongPromptsPayForAttentionAndOneHead) {
  const ModelTimes times = Times();
  PhaseWork work;
  work[StepPhase::kAttention].flops = 16e9;  // of four times as many tokens
  EXPECT_NEAR(times.PrefillSeconds(work, 2048), 4 * 0.5 + 16 * 0.01 + 0.005 + 4 * 0.02, 1e-9);
}

TEST(PlanTimes, TheCurveForTheSimulationAgrees) {
  const ModelTimes times = Times();
  const TimingModel timing = times.Timing();
  EXPECT_NEAR(timing.StepUs(1, 0), 120'000, 1);
  EXPECT_NEAR(timing.StepUs(32, 0), 210'000, 1);
  EXPECT_NEAR(timing.StepUs(1, 1000), 140'000, 1);
  // What looking back takes by position is taken off the curve: 20 us a position alone, but 10 ms
  // for all 131,328 of a prompt.
  EXPECT_NEAR(timing.StepUs({.tokens = 512}), 520'000, 1);
  EXPECT_NEAR(timing.StepUs({.tokens = 512, .prompt_positions = 131'328}), 530'000, 1);
}

TEST(PlanTimes, OnlyRowsOfLogitsPayForTheHead) {
  ModelTimes times = Times();
  Set(times.decode[0], StepPhase::kHead, 0.02, 1e8, 1e8);
  Set(times.decode[1], StepPhase::kHead, 0.03, 1e8, 8e8);
  Set(times.decode[2], StepPhase::kHead, 0.08, 1e8, 32e8);
  const TimingModel timing = times.Timing();
  EXPECT_NEAR(timing.StepUs(32, 0), 290'000, 1);
  EXPECT_NEAR(timing.StepUs({.tokens = 32, .rows = 8}), 240'000, 1);
  EXPECT_NEAR(timing.StepUs({.tokens = 32}), 210'000, 1);
}

TEST(PlanTimes, MemoryHelpsWhatReadsAndCoresWhatComputes) {
  const ModelTimes here = Times();
  const ModelTimes memory = OnMachine(here, Here(), {2 * kStream, kInt8, 2});
  // One user: 55 ms of reading and the same 10 ms between.
  EXPECT_NEAR(memory.StepSeconds(1, 0), 0.065, 1e-9);
  EXPECT_NEAR(memory.prefill.total(), here.prefill.total(), 1e-9);
  const ModelTimes cores = OnMachine(here, Here(), {kStream, 2 * kInt8, 4});
  EXPECT_NEAR(cores.StepSeconds(1, 0), 0.12, 1e-9);
  // The prompt's head is read, not computed: 2.5 ms at least, 5 ms here.
  EXPECT_NEAR(cores.prefill.total(), 0.25 + 0.005 + 0.005 + 0.01, 3e-3);
  // 32 users are bound by arithmetic, until reading at 85 % of the stream bounds them.
  EXPECT_NEAR(cores.StepSeconds(32, 0), 0.01 + 4e9 / (0.85 * kStream), 1e-9);
}

TEST(PlanTimes, ArithmeticBoundsFasterMemory) {
  const ModelTimes here = Times();
  const ModelTimes fast = OnMachine(here, Here(), {100 * kStream, kInt8, 2});
  // 8 users' products take 8 / 512 of a prompt's 0.5 s.
  EXPECT_NEAR(fast.StepSeconds(8, 0), 0.01 + 0.5 * 8 / 512, 1e-9);
}

TEST(PlanTimes, SaysWhatBoundsACase) {
  const ModelTimes times = Times();
  EXPECT_STREQ(BoundOf(times.decode[0], kStream), "memory");
  EXPECT_STREQ(BoundOf(times.decode[2], kStream), "arithmetic");
  EXPECT_STREQ(BoundOf(times.prefill, kStream), "arithmetic");
}

TEST(PlanTimes, SampledLayersAreSpreadAndEnough) {
  const std::vector<double> bytes(32, 100);
  EXPECT_EQ(SampledLayers(bytes, 1, 400), (std::vector<int>{4, 12, 20, 28}));
  EXPECT_EQ(SampledLayers(bytes, 1, 1), (std::vector<int>{8, 24}));
  EXPECT_EQ(SampledLayers(bytes, 2, 400), (std::vector<int>{8, 9, 24, 25}));
  EXPECT_EQ(SampledLayers(bytes, 1, 1e9).size(), 32u);
  EXPECT_EQ(SampledLayers(std::vector<double>(1, 5), 2, 1), std::vector<int>{0});
  EXPECT_EQ(SampledLayers(std::vector<double>(3, 0), 1, 1).size(), 3u);
}

}  // namespace
}  // namespace hearth
