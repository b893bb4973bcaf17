// SPDX-License-Identifier: Apache-2.0
// What choosing a token costs for a vocabulary of 201,088, by setting and by the shape of the
// distribution. The roofline is BM_ReadRow, one look at every logit.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "sampling/logprobs.h"
#include "sampling/sampler.h"

namespace hearth {
namespace {

constexpr int kVocab = 201088;

enum Shape : int { kPeaked, kBroad, kFlat };

// Peaked: like trained models, a bulk around -10 and a few tokens far above. Broad: normal with
// deviation 3, as random weights give. Flat: all equal, the worst case for every selection.
std::vector<float> Row(Shape shape) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> row(kVocab);
  for (float& logit : row) {
    const float x = normal(random);
    logit = shape == kFlat ? 1.0f : shape == kBroad ? 3 * x : 2.2f * x - 10;
  }
  if (shape == kPeaked) {
    for (int i = 0; i < 40; ++i) row[random() % kVocab] = 12 - static_cast<float>(i) / 4;
  }
  return row;
}

std::vector<Token> Text(size_t size) {
  std::mt19937_64 random(11);
  std::vector<Token> tokens(size);
  for (Token& token : tokens) token = static_cast<Token>(random() % 3000);
  return tokens;
}

void Choose(benchmark::State& state, const SamplingParams& params) {
  const std::vector<float> row = Row(static_cast<Shape>(state.range(0)));
  SamplerState past(params, Text(4096));
  Sampler sampler;
  for (auto _ : state) {
    const Token token = sampler.Choose(row, params, past);
    benchmark::DoNotOptimize(token);
    past.Append(token);
  }
}

void BM_ReadRow(benchmark::State& state) {
  const std::vector<float> row = Row(kBroad);
  for (auto _ : state) {
    float lanes[16] = {};
    for (size_t i = 0; i < row.size(); i += 16) {
      for (size_t lane = 0; lane < 16; ++lane) lanes[lane] += row[i + lane];
    }
    benchmark::DoNotOptimize(lanes);
  }
}
BENCHMARK(BM_ReadRow);

void BM_Greedy(benchmark::State& state) { Choose(state, {.temperature = 0}); }
void BM_Temperature(benchmark::State& state) { Choose(state, {.temperature = 0.8f}); }
void BM_TopK(benchmark::State& state) { Choose(state, {.top_k = 40}); }
void BM_TopP(benchmark::State& state) { Choose(state, {.top_p = 0.95f}); }
void BM_MinP(benchmark::State& state) { Choose(state, {.min_p = 0.05f}); }
void BM_Usual(benchmark::State& state) {
  Choose(state, {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f});
}
void BM_UsualWithPenalties(benchmark::State& state) {
  Choose(state, {.temperature = 0.8f,
                 .top_k = 40,
                 .top_p = 0.95f,
                 .min_p = 0.05f,
                 .repetition_penalty = 1.1f,
                 .frequency_penalty = 0.2f,
                 .presence_penalty = 0.1f});
}
void BM_Typical(benchmark::State& state) { Choose(state, {.typical_p = 0.9f}); }
void BM_Dry(benchmark::State& state) {
  Choose(state, {.temperature = 0.8f, .top_k = 40, .dry_multiplier = 0.8f});
}
void BM_Logprobs(benchmark::State& state) {
  const std::vector<float> row = Row(static_cast<Shape>(state.range(0)));
  LogprobReader reader;
  for (auto _ : state) benchmark::DoNotOptimize(reader.Read(row, 5, 20));
}

// A mask that leaves out every other token, as a grammar that allows many does.
void BM_Masked(benchmark::State& state) {
  const std::vector<float> row = Row(static_cast<Shape>(state.range(0)));
  const std::vector<uint32_t> allowed(kVocab / 32, 0x55555555u);
  Sampler sampler;
  const SamplerState past = SamplerState::WithoutPast(3);
  for (auto _ : state) {
    benchmark::DoNotOptimize(sampler.Choose(row, {.top_k = 40, .top_p = 0.95f}, past, allowed));
  }
}

BENCHMARK(BM_Greedy)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_Temperature)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_TopK)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_TopP)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_MinP)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_Usual)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_UsualWithPenalties)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_Typical)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_Dry)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_Masked)->DenseRange(kPeaked, kFlat);
BENCHMARK(BM_Logprobs)->DenseRange(kPeaked, kFlat);

}  // namespace
}  // namespace hearth

BENCHMARK_MAIN();
