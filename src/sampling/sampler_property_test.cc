// SPDX-License-Identifier: Apache-2.0
// Random rows, settings and pasts: the tokens that may come out, and their probabilities, against
// the sorted oracle. Small vocabularies take the sorting path, large ones the buckets.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sampling/sampler.h"
#include "testing/sampling_oracle.h"

namespace hearth {
namespace {

class RandomCase {
 public:
  explicit RandomCase(uint64_t seed) : random_(seed) {}

  testing::OracleInput Make() {
    testing::OracleInput input;
    const int vocab = Pick(0, 3) == 0 ? Pick(600, 3000) : Pick(1, 90);
    const int coarseness = Pick(0, 3);  // 1 and 2: logits on a grid, so many tie
    for (int i = 0; i < vocab; ++i) {
      float logit = std::normal_distribution<float>(0, 3)(random_);
      if (coarseness == 1) logit = std::round(logit);
      if (coarseness == 2) logit = std::round(logit / 4) * 4;
      if (Pick(0, 40) == 0) logit = -INFINITY;
      if (Pick(0, 60) == 0) logit = NAN;
      input.logits.push_back(logit);
    }
    for (int i = Pick(0, 30); i > 0; --i) input.prompt.push_back(AToken(vocab));
    for (int i = Pick(0, 30); i > 0; --i) input.output.push_back(AToken(vocab));
    if (Pick(0, 3) == 0) {
      for (int i = 0; i < (vocab + 31) / 32; ++i) {
        input.allowed.push_back(static_cast<uint32_t>(random_() | random_()));
      }
    }
    SetShape(input.params, vocab);
    SetPast(input.params, vocab);
    return input;
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  float Part() { return std::uniform_real_distribution<float>(0, 1)(random_); }
  // Few different ones, so that texts repeat themselves.
  Token AToken(int vocab) { return Pick(0, std::min(vocab, 6) - 1); }

  void SetShape(SamplingParams& params, int vocab) {
    params.temperature = Pick(0, 9) == 0 ? 0.0f : 0.2f + 2 * Part();
    if (Pick(0, 2) == 0) params.top_k = Pick(1, vocab + 5);
    if (Pick(0, 3) == 0) params.typical_p = Part();
    if (Pick(0, 1) == 0) params.top_p = Part();
    if (Pick(0, 2) == 0) params.min_p = Part() / 2;
    if (Pick(0, 3) == 0) {
      params.xtc_probability = Pick(0, 1) == 0 ? 0.0f : 1.0f;
      params.xtc_threshold = Part() / 2;
    }
  }

  void SetPast(SamplingParams& params, int vocab) {
    if (Pick(0, 2) == 0) params.repetition_penalty = 0.5f + 1.5f * Part();
    if (Pick(0, 2) == 0) params.frequency_penalty = 2 * Part() - 0.5f;
    if (Pick(0, 2) == 0) params.presence_penalty = 2 * Part() - 0.5f;
    if (Pick(0, 1) == 0) params.penalty_window = Pick(1, 40);
    params.prompt_counts = Pick(0, 1) == 0;
    if (Pick(0, 2) == 0) {
      params.dry_multiplier = Part();
      params.dry_base = 1 + Part();
      params.dry_allowed_length = Pick(1, 4);
      params.dry_window = Pick(1, 60);
      if (Pick(0, 1) == 0) params.dry_breakers = {AToken(vocab)};
    }
    for (int i = Pick(0, 3); i > 0; --i) params.logit_bias.push_back({AToken(vocab), Part() * 4});
    for (int i = Pick(0, 4); i > 0; --i) {
      std::vector<Token> word;
      for (int j = Pick(1, 3); j > 0; --j) word.push_back(AToken(vocab));
      params.bad_words.push_back(word);
    }
    if (Pick(0, 3) == 0) params.stop_tokens = {AToken(vocab)};
    if (Pick(0, 3) == 0) params.eos_tokens = {AToken(vocab)};
    params.ignores_eos = Pick(0, 1) == 0;
    params.min_tokens = Pick(0, 40);
  }

  std::mt19937_64 random_;
};

SamplerState StateOf(const testing::OracleInput& input) {
  SamplerState past(input.params, input.prompt);
  for (const Token token : input.output) past.Append(token);
  return past;
}

TEST(SamplerProperty, KeptTokensAreTheOracles) {
#ifdef HEARTH_DCHECKS
  constexpr uint64_t kCases = 2'000;
#else
  constexpr uint64_t kCases = 20'000;
#endif
  Sampler sampler;
  int compared = 0, close_calls = 0, nothing = 0;
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    testing::OracleInput input = RandomCase(seed).Make();
    input.drops_top = input.params.xtc_probability > 0;
    const testing::SamplingOracle oracle(input);
    const SamplerState past = StateOf(input);
    const auto chances = sampler.Chances(input.logits, input.params, past, input.allowed);
    const Token chosen = sampler.Choose(input.logits, input.params, past, input.allowed);
    if (oracle.closest_call() < 2e-5) {
      ++close_calls;
      continue;
    }
    ++compared;
    std::vector<double> got(input.logits.size(), 0);
    Token last = -1;
    for (const Sampler::Chance& chance : chances) {
      ASSERT_GT(chance.token, last) << "seed " << seed << ": ascending";
      last = chance.token;
      got[static_cast<size_t>(chance.token)] = chance.probability;
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const double want = oracle.probabilities()[i];
      // Below e^-87 of the largest a float32 weight is 0.
      ASSERT_TRUE(want <= 1e-30 || got[i] > 0) << "seed " << seed << ": token " << i << " is lost";
      ASSERT_NEAR(got[i], want, 2e-5 * want + 1e-30) << "seed " << seed << ": token " << i;
    }
    nothing += chances.empty() ? 1 : 0;
    ASSERT_EQ(chosen < 0, chances.empty()) << "seed " << seed;
    ASSERT_TRUE(chosen < 0 || got[static_cast<size_t>(chosen)] > 0) << "seed " << seed;
  }
  EXPECT_GT(compared, static_cast<int>(kCases) / 2) << close_calls << " were too close to call";
  EXPECT_GT(nothing, 0) << "some rows should leave nothing to choose";
}

TEST(SamplerProperty, ZeroTemperatureIsTheLargestEditedLogit) {
  Sampler sampler;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    testing::OracleInput input = RandomCase(seed).Make();
    const SamplerState past = StateOf(input);
    for (const float temperature : {0.0f, kLeastTemperature / 2}) {
      input.params.temperature = temperature;
      const Token cold = sampler.Choose(input.logits, input.params, past, input.allowed);
      SamplingParams one = input.params;
      one.temperature = 1;
      one.top_k = 1;
      ASSERT_EQ(cold, sampler.Choose(input.logits, one, past, input.allowed)) << "seed " << seed;
    }
  }
}

// A sequence that is preempted and rebuilt anywhere goes on with the same tokens.
TEST(SamplerProperty, ReplayGivesTheSameTokens) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    testing::OracleInput input = RandomCase(seed).Make();
    input.params.bad_words.clear();
    input.params.seed = seed;
    const auto row_at = [&](size_t step) {
      std::vector<float> row = input.logits;
      std::rotate(row.begin(), row.begin() + static_cast<long>(step % row.size()), row.end());
      return row;
    };
    Sampler once;
    SamplerState past(input.params, input.prompt, 3);
    std::vector<Token> said;
    for (size_t step = 0; step < 40; ++step) {
      const Token token = once.Choose(row_at(step), input.params, past);
      if (token < 0) break;
      past.Append(token);
      said.push_back(token);
    }
    Sampler other;  // with another row in its memory
    other.Choose(std::vector<float>(5000, 1.0f), {.typical_p = 0.5f}, SamplerState::WithoutPast(0));
    for (size_t step = 0; step < said.size(); ++step) {
      SamplerState rebuilt(input.params, input.prompt, 3);
      for (size_t i = 0; i < step; ++i) rebuilt.Append(said[i]);
      ASSERT_EQ(other.Choose(row_at(step), input.params, rebuilt), said[step]) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace hearth
