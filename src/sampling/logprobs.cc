// SPDX-License-Identifier: Apache-2.0
#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sampling/exact_math.h"

namespace hearth {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What turns the logits of one row into log-probabilities.
struct Normaliser {
  float largest;
  double log_total;
  float operator()(float logit) const {
    // Some logit is +infinity (and then those share all) or every one is impossible.
    if (!std::isfinite(largest)) {
      return logit == kInfinity ? static_cast<float>(-log_total) : kLowestLogprob;
    }
    const double logprob = (static_cast<double>(logit) - static_cast<double>(largest)) - log_total;
    return static_cast<float>(std::max(logprob, static_cast<double>(kLowestLogprob)));
  }
};

}  // namespace

Logprobs LogprobReader::Read(std::span<const float> logits, Token chosen, int num_top) {
  HEARTH_CHECK(chosen >= 0 && static_cast<size_t>(chosen) < logits.size());
  row_.Load(logits, {});
  row_.FindLargest();
  Normaliser logprob_of = {row_.largest(), 0};
  if (std::isfinite(row_.largest())) {
    logprob_of.log_total = NaturalLog(row_.Weigh(1.0f));
  } else if (row_.largest() == kInfinity) {
    const auto many = std::count(logits.begin(), logits.end(), kInfinity);
    logprob_of.log_total = NaturalLog(static_cast<double>(many));
  }
  Logprobs out = {{chosen, logprob_of(*row_.Find(chosen))}, {}, 0};
  if (num_top <= 0) return out;
  row_.CollectLikeliest(static_cast<size_t>(num_top), candidates_);
  candidates_.KeepTopK(static_cast<size_t>(num_top));
  std::vector<Candidate> top(candidates_.list().begin(), candidates_.list().end());
  std::stable_sort(top.begin(), top.end(),  // they come in token order
                   [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  for (const Candidate& candidate : top) {
    out.top.push_back({candidate.token, logprob_of(candidate.logit)});
  }
  return out;
}

std::vector<Logprobs> LogprobReader::ReadRows(std::span<const float> rows,
                                              std::span<const Token> next, int num_top) {
  std::vector<Logprobs> out;
  if (next.empty()) return out;
  HEARTH_CHECK(rows.size() % next.size() == 0);
  const size_t vocab = rows.size() / next.size();
  for (size_t i = 0; i < next.size(); ++i) {
    out.push_back(Read(rows.subspan(i * vocab, vocab), next[i], num_top));
  }
  return out;
}

}  // namespace hearth
