// SPDX-License-Identifier: Apache-2.0
#include "sampling/logit_edits.h"

#include <algorithm>
#include <limits>

namespace hearth {
namespace {

void Ban(Token token, LogitRow& row) {
  if (float* logit = row.Find(token)) *logit = -std::numeric_limits<float>::infinity();
}

void BanBadWords(const SamplingParams& params, std::span<const Token> tokens, LogitRow& row) {
  for (const std::vector<Token>& word : params.bad_words) {
    if (word.empty() || word.size() - 1 > tokens.size()) continue;
    const std::span<const Token> end = tokens.last(word.size() - 1);
    if (std::equal(end.begin(), end.end(), word.begin())) Ban(word.back(), row);
  }
}

void BanEnds(const SamplingParams& params, LogitRow& row) {
  for (const Token token : params.stop_tokens) Ban(token, row);
  if (params.ignores_eos) return;  // then they end nothing
  for (const Token token : params.eos_tokens) Ban(token, row);
}

void Penalise(const SamplingParams& params, std::span<const SamplerState::Seen> seen,
              LogitRow& row) {
  for (const SamplerState::Seen& entry : seen) {
    float* logit = row.Find(entry.token);
    if (logit == nullptr || entry.in_window == 0) continue;
    const float repetition = params.repetition_penalty;
    *logit = *logit > 0 ? *logit / repetition : *logit * repetition;
    const int count = entry.in_window - (params.prompt_counts ? 0 : entry.from_prompt);
    if (count == 0) continue;
    *logit -= params.frequency_penalty * static_cast<float>(count);
    *logit -= params.presence_penalty;
  }
}

// multiplier * base^(length - allowed), by multiplication alone: pow differs between C libraries.
float DryPenalty(const SamplingParams& params, int length) {
  constexpr double kEnough = 1e30;  // far below every logit, and still no infinity
  auto penalty = static_cast<double>(params.dry_multiplier);
  for (int i = params.dry_allowed_length; i < length && penalty < kEnough; ++i) {
    penalty *= static_cast<double>(params.dry_base);
    if (params.dry_base == 1) break;
  }
  return static_cast<float>(std::min(penalty, kEnough));
}

}  // namespace

void RepeatsOfTheEnd(std::span<const Token> tokens, int limit, std::vector<int>& out) {
  // The Z function of the reversed tokens: z[d] is how far the end, read backwards, is repeated
  // when one starts d tokens earlier.
  const int n = static_cast<int>(tokens.size());
  const auto at = [tokens, n](int back) { return tokens[static_cast<size_t>(n - 1 - back)]; };
  std::vector<int>& z = out;
  z.assign(tokens.size(), 0);
  if (z.empty()) return;
  int left = 0, right = 0;  // the match that reaches furthest: [left, right)
  for (int d = 1; d < n; ++d) {
    int length = d < right ? std::min(right - d, z[static_cast<size_t>(d - left)]) : 0;
    while (length < limit && d + length < n && at(length) == at(d + length)) ++length;
    z[static_cast<size_t>(d)] = length;
    if (d + length > right) {
      left = d;
      right = d + length;
    }
  }
  // d tokens back from the end stands position n - 1 - d; what follows it is at i = n - d.
  std::reverse(z.begin(), z.end());
  std::rotate(z.begin(), z.end() - 1, z.end());
}

void LogitEdits::Dry(const SamplingParams& params, std::span<const Token> tokens, LogitRow& row) {
  const size_t window = std::min(tokens.size(), static_cast<size_t>(params.dry_window));
  tokens = tokens.last(window);
  const auto is_breaker = [&params](Token token) {
    return std::find(params.dry_breakers.begin(), params.dry_breakers.end(), token) !=
           params.dry_breakers.end();
  };
  const auto since_breaker = std::find_if(tokens.rbegin(), tokens.rend(), is_breaker);
  const int limit = static_cast<int>(since_breaker - tokens.rbegin());
  if (limit < params.dry_allowed_length) return;
  RepeatsOfTheEnd(tokens, limit, match_);
  longest_.resize(static_cast<size_t>(row.num_tokens()));
  prolonging_.clear();
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (match_[i] < params.dry_allowed_length || row.Find(tokens[i]) == nullptr) continue;
    int& longest = longest_[static_cast<size_t>(tokens[i])];
    if (longest == 0) prolonging_.push_back(tokens[i]);
    longest = std::max(longest, match_[i]);
  }
  for (const Token token : prolonging_) {
    int& longest = longest_[static_cast<size_t>(token)];
    if (!is_breaker(token)) *row.Find(token) -= DryPenalty(params, longest);
    longest = 0;
  }
}

void LogitEdits::Apply(const SamplingParams& params, const SamplerState& state, LogitRow& row) {
  BanBadWords(params, state.tokens(), row);
  if (state.num_generated() < static_cast<uint64_t>(std::max(params.min_tokens, 0))) {
    BanEnds(params, row);
  }
  for (const LogitBias& bias : params.logit_bias) {
    if (float* logit = row.Find(bias.token)) *logit += bias.bias;
  }
  Penalise(params, state.seen(), row);
  if (params.dry_multiplier > 0) Dry(params, state.tokens(), row);
}

}  // namespace hearth
