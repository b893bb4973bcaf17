// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hearth {
namespace {

// splitmix64's finaliser: every input bit reaches every output bit.
uint64_t Mixed(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Token MostLikely(std::span<const float> logits) {
  Token best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    if (best < 0 || logits[i] > logits[static_cast<size_t>(best)]) best = static_cast<Token>(i);
  }
  return best;
}

struct Candidate {
  Token token;
  double weight;
};

double Sum(const std::vector<Candidate>& candidates) {
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  return total;
}

// top_k, then top_p of what is left, then min_p; at least one candidate stays.
void DropUnlikely(std::vector<Candidate>& candidates, const SamplingParams& params) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  });
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < candidates.size()) {
    candidates.resize(static_cast<size_t>(params.top_k));
  }
  const double share = static_cast<double>(params.top_p) * Sum(candidates);
  const double least = static_cast<double>(params.min_p) * candidates[0].weight;
  double kept = 0;
  size_t count = 0;
  while (count < candidates.size() &&
         (count == 0 || (kept < share && candidates[count].weight >= least))) {
    kept += candidates[count++].weight;
  }
  candidates.resize(count);
}

}  // namespace

double UniformDraw(uint64_t seed, uint64_t step) {
  const uint64_t bits = Mixed(Mixed(seed + 0x9e3779b97f4a7c15u) + step * 0x9e3779b97f4a7c15u);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Token Sample(std::span<const float> logits, const SamplingParams& params, uint64_t step) {
  const Token best = MostLikely(logits);
  if (best < 0 || params.temperature <= 0) return best;
  const double top = static_cast<double>(logits[static_cast<size_t>(best)]);
  if (!std::isfinite(top)) return best;
  std::vector<Candidate> candidates;
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    const double weight =
        std::exp((static_cast<double>(logits[i]) - top) / static_cast<double>(params.temperature));
    if (weight <= 0) continue;
    candidates.push_back({static_cast<Token>(i), weight});
    total += weight;
  }
  if (params.top_k > 0 || params.top_p < 1 || params.min_p > 0) {
    DropUnlikely(candidates, params);
    total = Sum(candidates);
  }
  double left = UniformDraw(params.seed, step) * total;
  for (const Candidate& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) return candidate.token;
  }
  return candidates.back().token;  // rounding left a sliver
}

}  // namespace hearth
