// SPDX-License-Identifier: Apache-2.0
// typical_p looks at few tokens of a long row; here it is held against the oracle, which sorts all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sampling/logit_row.h"
#include "sampling/sampler.h"
#include "testing/sampling_oracle.h"

namespace hearth {
namespace {

using testing::OracleInput;
using testing::SamplingOracle;

struct Rows {
  std::mt19937_64 random{17};
  float Part() { return static_cast<float>(random() % 1000) / 1000; }

  // From all equal over normal to a few far above a bulk, some of them impossible.
  std::vector<float> Next(size_t most) {
    std::normal_distribution<float> normal;
    std::vector<float> row(1 + random() % most);
    const auto kind = random() % 4;
    const float spread = kind == 0 ? 0 : 5 * Part();
    for (float& logit : row) logit = spread * normal(random) - (kind == 1 ? 10.0f : 0.0f);
    if (kind == 1) {
      for (int i = 0; i < 10; ++i) row[random() % row.size()] = 8 * Part();
    }
    if (kind == 2) {  // a second bulk
      for (size_t i = 0; i < row.size(); i += 3) row[i] -= 9;
    }
    for (int i = 0; i < 3; ++i) row[random() % row.size()] = -INFINITY;
    return row;
  }
  SamplingParams Params() {
    SamplingParams params;
    params.typical_p = random() % 10 == 0 ? 0.0f : random() % 4 == 0 ? 0.999f : Part();
    params.temperature = 0.1f + 2 * Part();
    return params;
  }
};

// The same selection from every token that is possible at all.
std::vector<Token> KeptOfAll(std::span<const float> logits, const SamplingParams& params) {
  const float inverse_temperature = 1 / params.temperature;
  LogitRow row;
  row.Load(logits, {});
  row.FindLargest();
  if (row.FirstLargest() < 0) return {};
  const double total = row.Weigh(inverse_temperature);
  double sum = 0;
  Candidates all;
  row.CollectHeaviest(0, all);
  for (const Candidate& one : all.list()) {
    const float x = (one.logit - row.largest()) * inverse_temperature;
    sum += static_cast<double>(one.weight) * static_cast<double>(x);
  }
  const double expected = std::min(0.0, row.MeanWeighed(inverse_temperature));
  EXPECT_NEAR(expected, sum / total, 1e-6 * (1 - sum / total));
  all.KeepTypical(static_cast<double>(params.typical_p) * total, row.largest(), inverse_temperature,
                  expected);
  std::vector<Token> kept;
  for (const Candidate& one : all.list()) kept.push_back(one.token);
  return kept;
}

TEST(Typical, LeavesOutNothingThatCouldBeKept) {
  Rows rows;
  Sampler sampler;
  for (int round = 0; round < 1500; ++round) {
    const std::vector<float> logits = rows.Next(rows.random() % 8 == 0 ? 20000 : 400);
    const SamplingParams params = rows.Params();
    std::vector<Token> kept;
    for (const auto& [token, chance] :
         sampler.Chances(logits, params, SamplerState::WithoutPast(0))) {
      kept.push_back(token);
    }
    ASSERT_EQ(kept, KeptOfAll(logits, params)) << "round " << round;
  }
}

TEST(Typical, KeepsWhatSortingKeeps) {
  Rows rows;
  Sampler sampler;
  int num_compared = 0;
  for (int round = 0; round < 2000; ++round) {
    OracleInput input;
    input.logits = rows.Next(40);
    input.params = rows.Params();
    const SamplingOracle oracle(input);
    if (oracle.closest_call() < 1e-5) continue;
    std::vector<double> chances(input.logits.size());
    for (const auto& [token, chance] :
         sampler.Chances(input.logits, input.params, SamplerState::WithoutPast(0))) {
      chances[static_cast<size_t>(token)] = chance;
    }
    for (size_t i = 0; i < chances.size(); ++i) {
      ASSERT_NEAR(chances[i], oracle.probabilities()[i], 1e-5) << "round " << round << ", " << i;
    }
    ++num_compared;
  }
  EXPECT_GT(num_compared, 1000);
}

// The first of equals: a row of ties is the worst case of finding them by counting.
TEST(Typical, TiesGoByToken) {
  const std::vector<float> flat(100'000, 2.5f);
  const auto kept = Sampler().Chances(flat, {.typical_p = 0.25f}, SamplerState::WithoutPast(0));
  ASSERT_EQ(kept.size(), 25'000u);
  EXPECT_EQ(kept.front().token, 0);
  EXPECT_EQ(kept.back().token, 24'999);
}

}  // namespace
}  // namespace hearth
