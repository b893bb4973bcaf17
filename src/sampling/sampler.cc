// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>

#include "sampling/exact_math.h"
#include "sampling/random_draw.h"

namespace hearth {
namespace {

double DrawFor(const SamplingParams& params, const SamplerState& state, DrawStream stream) {
  return UniformDraw({params.seed, state.choice(), state.num_generated(), stream});
}

// No token lighter than this can be among the likeliest with `share` of the weight: all lighter
// ones together weigh less than what is left out. A thousandth is room for rounding.
float LeastOfShare(float share, double total, int num_tokens) {
  return static_cast<float>(0.999 * (1 - static_cast<double>(share)) * total / num_tokens);
}

// No token lighter than this can be among the most typical with `share` of the weight. `expected`
// is the expected x = (logit - largest) / temperature, at most 0. Below 2 * expected a token is
// further from it than the likeliest one, whose x is 0: there, every heavier token comes first, and
// what was said of the likeliest holds. A thousandth is room for rounding again.
float LeastTypical(float share, double total, double expected, int num_tokens) {
  const float beyond = 0.999f * ExpOfNonPositive(static_cast<float>(2 * expected));
  return std::min(beyond, LeastOfShare(share, total, num_tokens));
}

}  // namespace

void Sampler::NarrowByShare(const SamplingParams& params, double total) {
  if (params.top_p < 1) {
    candidates_.KeepTopWeight(static_cast<double>(params.top_p) * total);
  }
  candidates_.KeepMinP(params.min_p);
}

double Sampler::CollectTypical(const SamplingParams& params, double total) {
  const float inverse_temperature = 1 / params.temperature;
  const double expected = std::min(0.0, row_.MeanWeighed(inverse_temperature));
  row_.CollectHeaviest(LeastTypical(params.typical_p, total, expected, row_.num_tokens()),
                       candidates_);
  candidates_.KeepTypical(static_cast<double>(params.typical_p) * total, row_.largest(),
                          inverse_temperature, expected);
  return candidates_.TotalWeight();
}

Sampler::Outcome Sampler::Narrow(std::span<const float> logits, const SamplingParams& params,
                                 const SamplerState& state, AllowedTokens allowed) {
  row_.Load(logits, allowed);
  edits_.Apply(params, state, row_);
  row_.FindLargest();
  certain_ = row_.FirstLargest();
  if (certain_ < 0) return Outcome::kNothing;
  if (params.temperature < kLeastTemperature || params.top_k == 1) return Outcome::kCertain;
  if (!std::isfinite(row_.largest())) return Outcome::kCertain;

  const float inverse_temperature = 1 / params.temperature;
  const bool drops_top =
      params.xtc_probability > 0 &&
      DrawFor(params, state, DrawStream::kXtc) < static_cast<double>(params.xtc_probability);
  double total = 0;
  if (params.top_k > 0 && params.top_k < row_.num_tokens()) {
    const auto count = static_cast<size_t>(params.top_k);
    row_.CollectLikeliest(count, candidates_);
    candidates_.KeepTopK(count);
    candidates_.Weigh(row_.largest(), inverse_temperature);
    candidates_.KeepTypical(params.typical_p, inverse_temperature);
    total = candidates_.TotalWeight();
  } else if (params.typical_p < 1) {
    total = CollectTypical(params, row_.Weigh(inverse_temperature));
  } else {
    total = row_.Weigh(inverse_temperature);
    float least = 0;
    if (params.top_p < 1) {
      least = LeastOfShare(params.top_p, total, row_.num_tokens());
    } else if (params.min_p > 0) {
      least = params.min_p;  // the likeliest weighs 1
    } else if (!drops_top) {
      return Outcome::kWholeRow;
    }
    row_.CollectHeaviest(least, candidates_);
  }
  NarrowByShare(params, total);
  if (drops_top) candidates_.DropTopChoices(params.xtc_threshold);
  return Outcome::kCandidates;
}

Token Sampler::Choose(std::span<const float> logits, const SamplingParams& params,
                      const SamplerState& state, AllowedTokens allowed) {
  const Outcome outcome = Narrow(logits, params, state, allowed);
  if (outcome == Outcome::kNothing) return -1;
  if (outcome == Outcome::kCertain) return certain_;
  const double u = DrawFor(params, state, DrawStream::kToken);
  return outcome == Outcome::kWholeRow ? row_.Draw(u) : candidates_.Draw(u);
}

std::vector<Sampler::Chance> Sampler::Chances(std::span<const float> logits,
                                              const SamplingParams& params,
                                              const SamplerState& state, AllowedTokens allowed) {
  const Outcome outcome = Narrow(logits, params, state, allowed);
  if (outcome == Outcome::kNothing) return {};
  if (outcome == Outcome::kCertain) return {{certain_, 1.0}};
  if (outcome == Outcome::kWholeRow) row_.CollectHeaviest(0, candidates_);
  const double total = candidates_.TotalWeight();
  std::vector<Chance> chances;
  for (const Candidate& candidate : candidates_.list()) {
    chances.push_back({candidate.token, static_cast<double>(candidate.weight) / total});
  }
  return chances;
}

Token Sample(std::span<const float> logits, const SamplingParams& params, uint64_t step) {
  return Sampler().Choose(logits, params, SamplerState::WithoutPast(step));
}

}  // namespace hearth
