// SPDX-License-Identifier: Apache-2.0
// Prompts that arrive beside streams, on simulated machines with experts and without: how fast they
// are read, and whether the streams' bound holds. The family `prompts` plays more seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/simulation.h"

namespace hearth {
namespace {

struct Reading {
  double first_token_s = 0;  // of the prompts, median
  double p99_of_bound = 0;   // between tokens of the streams while prompts are read
};

double Rank(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  return values[static_cast<size_t>(std::max(0.0, std::ceil(share * count) - 1))];
}

constexpr size_t kStreams = 8;

Reading Play(const SimScenario& scenario) {
  const SimOutcome outcome = Simulation(scenario).Play();
  EXPECT_EQ(outcome.failure, "");
  std::vector<double> waits, gaps;
  int64_t first_us = 0, last_us = 0;
  for (size_t i = kStreams; i < outcome.fates.size(); ++i) {
    const SimFate& fate = outcome.fates[i];
    EXPECT_FALSE(fate.heard_us.empty());
    if (fate.heard_us.empty()) return {};
    waits.push_back(static_cast<double>(fate.heard_us[0] - fate.arrived_us) * 1e-6);
    if (i == kStreams) first_us = fate.arrived_us;
    last_us = std::max(last_us, fate.heard_us[0]);
  }
  for (size_t i = 0; i < kStreams; ++i) {
    const std::vector<int64_t>& heard = outcome.fates[i].heard_us;
    EXPECT_GE(heard.back(), last_us) << "a stream ended before the prompts were read";
    for (size_t k = 1; k < heard.size() && heard[k - 1] < last_us; ++k) {
      if (heard[k] > first_us) gaps.push_back(static_cast<double>(heard[k] - heard[k - 1]));
    }
  }
  const auto bound_us = static_cast<double>(scenario.options.scheduler.itl_target_us);
  return {Rank(waits, 0.5), Rank(gaps, 0.99) / bound_us};
}

TEST(Chunks, PromptsBesideStreamsAreReadFastAndTheBoundHolds) {
  double knows_s = 0, does_not_s = 0;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SimScenario scenario = PromptsAtOnceScenario(seed);
    const Reading knows = Play(scenario);
    EXPECT_LE(knows.p99_of_bound, 1.5) << "seed " << seed;
    // 8 streams and all experts take 48 ms, each token 0.6: about 20 of them in 60 ms.
    EXPECT_LE(knows.first_token_s, 0.5 * 8000 / 20 * 0.060) << "seed " << seed;
    knows_s += knows.first_token_s;
    scenario.options.scheduler.experts = {};
    does_not_s += Play(scenario).first_token_s;
  }
  EXPECT_LE(knows_s, 0.95 * does_not_s);
}

TEST(Chunks, ASlowTimeIsUnlearnt) {
  // Over several seeds: how a noisy start happens to be learnt moves one seed's times by a tenth.
  double usual_s = 0, after_s = 0;
  constexpr uint64_t kSeeds = 3;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SimScenario scenario = PromptsAtOnceScenario(seed);
    usual_s += Play(scenario).first_token_s;
    // The first prompts are read on a machine that is four times slower.
    SimScenario slow = scenario;
    slow.slow_factor = 4;
    slow.slow_from_us = scenario.clients[kStreams].arrives_us;
    slow.slow_to_us = slow.slow_from_us + 4'000'000;
    after_s += Play(slow).first_token_s;
  }
  EXPECT_LE(after_s, usual_s * 1.3 + 4 * kSeeds);
}

TEST(Chunks, ADenseMachineIsReadAsFastAsItsBoundAllows) {
  for (uint64_t seed = 0; seed < 1; ++seed) {
    SimScenario scenario = PromptsAtOnceScenario(seed);
    // 20 ms and 0.5 ms a token: 70 tokens beside 8 streams in 60 ms, 8,000 in 115 steps.
    scenario.timing = TimingModel({{1, 20'500}, {101, 70'500}}, 0.05);
    scenario.options.scheduler.experts = {};
    const Reading dense = Play(scenario);
    EXPECT_LE(dense.p99_of_bound, 1.5) << "seed " << seed;
    EXPECT_LE(dense.first_token_s, 0.5 * 1.4 * 115 * 0.06) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hearth
