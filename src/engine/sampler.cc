// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <cmath>

#include "engine/random_draw.h"

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

}  // namespace

void Sampler::NarrowByShare(const SamplingParams& params, double total) {
  if (params.typical_p < 1) {
    candidates_.KeepTypical(params.typical_p, 1 / params.temperature);
    total = candidates_.TotalWeight();
  }
  if (params.top_p < 1) {
    candidates_.KeepTopWeight(static_cast<double>(params.top_p) * total);
  }
  candidates_.KeepMinP(params.min_p);
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
    total = candidates_.TotalWeight();
  } else {
    total = row_.Weigh(inverse_temperature);
    float least = 0;
    if (params.typical_p < 1) {
      least = 0;  // the typical ones may be light
    } else if (params.top_p < 1) {
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
