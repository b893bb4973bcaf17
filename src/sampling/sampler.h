// SPDX-License-Identifier: Apache-2.0
// Logits -> one token. Pure: the same logits, parameters, past and step give the same token, on
// every processor and whatever else is in the batch. docs/sampling.md has the order of operations.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "sampling/candidates.h"
#include "sampling/logit_edits.h"
#include "sampling/logit_row.h"
#include "sampling/sampler_state.h"
#include "sampling/sampling_params.h"
namespace hearth {

// Working memory for choosing tokens: one serves any number of sequences in turn, and no choice
// depends on the ones before it. Thread: one at a time.
class Sampler {
 public:
  // The token that follows `state`. Impossible are NaN, -infinity and what `allowed` leaves out;
  // -1 if nothing is possible. Ties go to the lower token. Expects params that Validate accepts,
  // and a state made with them.
  Token Choose(std::span<const float> logits, const SamplingParams& params,
               const SamplerState& state, AllowedTokens allowed = {});

  struct Chance {
    Token token;
    double probability;
  };
  // What Choose draws from: every token that may come out, ascending, with its probability.
  std::vector<Chance> Chances(std::span<const float> logits, const SamplingParams& params,
                              const SamplerState& state, AllowedTokens allowed = {});

 private:
  enum class Outcome : unsigned char { kNothing, kCertain, kWholeRow, kCandidates };
  // Everything but the draw. Leaves the choice in certain_, row_ or candidates_.
  Outcome Narrow(std::span<const float> logits, const SamplingParams& params,
                 const SamplerState& state, AllowedTokens allowed);
  // The most typical of a row that was weighed; returns their weight.
  double CollectTypical(const SamplingParams& params, double total);
  void NarrowByShare(const SamplingParams& params, double total);

  LogitRow row_;
  LogitEdits edits_;
  Candidates candidates_;
  Token certain_ = -1;
};

// One token without a past, for callers that set no penalties. `step` counts generated tokens.
Token Sample(std::span<const float> logits, const SamplingParams& params, uint64_t step);

}  // namespace hearth
