// SPDX-License-Identifier: Apache-2.0
// Thousands of choices, probabilities and logprobs folded into one number, which every build on
// every processor must find again. Inputs are made of integers: the C library has no say in them.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sampling/logprobs.h"
#include "sampling/sampler.h"

namespace hearth {
namespace {

constexpr uint64_t kGolden = 0xfa52197a1d661e8a;

class Fold {
 public:
  void Add(uint64_t value) {
    for (int i = 0; i < 8; ++i) {
      hash_ = (hash_ ^ (value >> (8 * i) & 255)) * 0x100000001b3u;  // FNV-1a
    }
  }
  void Add(float value) { Add(uint64_t{std::bit_cast<uint32_t>(value)}); }
  void Add(double value) { Add(std::bit_cast<uint64_t>(value)); }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

class Numbers {
 public:
  uint32_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 32);
  }
  int Below(int end) { return static_cast<int>(Next() % static_cast<uint32_t>(end)); }
  float Part() { return static_cast<float>(Next() >> 8) * 0x1p-24f; }

 private:
  uint64_t state_ = 42;
};

std::vector<float> Row(Numbers& numbers, int size) {
  std::vector<float> row;
  for (int i = 0; i < size; ++i) {
    float sum = 0;
    for (int j = 0; j < 6; ++j) sum += numbers.Part() - 0.5f;
    row.push_back(sum * 8);
  }
  return row;
}

SamplingParams Settings(Numbers& numbers, int round) {
  SamplingParams params;
  params.seed = static_cast<uint64_t>(round);
  params.temperature = 0.3f + numbers.Part();
  if (round % 2 == 0) params.top_k = 1 + numbers.Below(2000);
  if (round % 3 == 0) params.top_p = numbers.Part();
  if (round % 5 == 0) params.typical_p = numbers.Part();
  if (round % 7 == 0) params.min_p = numbers.Part() / 4;
  if (round % 4 == 0) params.repetition_penalty = 1 + numbers.Part();
  if (round % 6 == 0) params.frequency_penalty = numbers.Part();
  if (round % 9 == 0) params.dry_multiplier = numbers.Part();
  if (round % 10 == 0) params.xtc_probability = numbers.Part();
  return params;
}

uint64_t FoldEverything() {
  Numbers numbers;
  Fold fold;
  Sampler sampler;
  LogprobReader reader;
  for (int round = 0; round < 1500; ++round) {
    const std::vector<float> row = Row(numbers, 1 + numbers.Below(round % 100 == 0 ? 60000 : 3000));
    const SamplingParams params = Settings(numbers, round);
    std::vector<Token> prompt;
    for (int i = 0; i < 60; ++i) prompt.push_back(numbers.Below(8));
    SamplerState past(params, prompt);
    for (int step = 0; step < 3; ++step) {
      const Token token = sampler.Choose(row, params, past);
      fold.Add(static_cast<uint64_t>(token));
      past.Append(token);
    }
    for (const Sampler::Chance& chance : sampler.Chances(row, params, past)) {
      fold.Add(static_cast<uint64_t>(chance.token));
      fold.Add(chance.probability);
    }
    for (const TokenLogprob& top : reader.Read(row, 0, 20).top) fold.Add(top.logprob);
  }
  return fold.hash();
}

bool CanRun(const std::string& isa) {
#ifdef __x86_64__
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "avx512") {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
  }
#endif
  return isa == "baseline";
}

int Main(const std::string& isa) {
  if (!CanRun(isa)) {
    std::printf("SKIPPED LOUDLY: this processor has no %s\n", isa.c_str());
    return 77;
  }
  const uint64_t hash = FoldEverything();
  std::printf("%s: %016llx, expected %016llx\n", isa.c_str(), static_cast<unsigned long long>(hash),
              static_cast<unsigned long long>(kGolden));
  return hash == kGolden ? 0 : 1;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Main(argc > 1 ? argv[1] : "baseline"); }
