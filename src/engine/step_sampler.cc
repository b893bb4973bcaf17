// SPDX-License-Identifier: Apache-2.0
#include "engine/step_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/prompt_reading.h"

namespace hearth {
namespace {

constexpr char kNoNumbers[] = "numerical_error";

// Backends answer so when they met a value that is no number.
bool IsNoNumber(const RowResult& row) {
  if (!row.logits.empty()) return std::isnan(row.logits[0]);
  return row.top.empty() ? row.token < 0 : std::isnan(row.top[0].logit);
}

}  // namespace

std::span<const SliceOutcome> StepSampler::Sample(const StepPlan& plan,
                                                  std::span<Sequence* const> planned,
                                                  std::span<const RowResult> rows,
                                                  MaskFills& masks) {
  HEARTH_CHECK(planned.size() == plan.slices.size());
  if (outcomes_.size() < planned.size()) outcomes_.resize(planned.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    const SeqSlice& slice = plan.slices[i];
    SliceOutcome& outcome = outcomes_[i];
    outcome.error.clear();
    outcome.failure = Finish::kError;
    outcome.tokens.clear();
    outcome.stops = false;
    outcome.logprobs.clear();
    outcome.prompt_logprobs.clear();
    if (IsScoring(*planned[i]) && !ScorePrompt(*planned[i], slice, rows, outcome)) continue;
    const auto last = static_cast<size_t>(slice.first_row + slice.num_rows - 1);
    if (slice.count >= planned[i]->backlog() && !planned[i]->request.prompt_only) {
      SayAll(*planned[i], i, rows.subspan(last - planned[i]->draft.size()), masks, outcome);
    } else if (IsNoNumber(rows[last])) {
      outcome.error = kNoNumbers;
    }
  }
  return std::span(outcomes_).first(planned.size());
}

bool StepSampler::ScorePrompt(const Sequence& s, const SeqSlice& slice,
                              std::span<const RowResult> rows, SliceOutcome& outcome) {
  const int end = slice.num_computed + slice.count;
  const int row_of_0 = slice.first_row - (end - slice.num_rows);
  // What was read before it was preempted is not told again.
  outcome.first_scored = s.num_read + 1;
  for (int position = s.num_read; position < std::min(end, NumToScore(s)); ++position) {
    const std::span<const float> said = rows[static_cast<size_t>(row_of_0 + position)].logits;
    if (std::isnan(said[0])) {
      outcome.error = kNoNumbers;
      return false;
    }
    const Token next = s.tokens[static_cast<size_t>(position) + 1];
    outcome.prompt_logprobs.push_back(
        logprobs_.Read(said, next, s.request.sampling.num_prompt_logprobs));
    const float own = said[static_cast<size_t>(next)];
    const auto above = std::count_if(said.begin(), said.end(), [own](float x) { return x > own; });
    outcome.prompt_logprobs.back().rank = 1 + static_cast<int>(above);
  }
  return true;
}

void StepSampler::SayAll(Sequence& s, size_t slice, std::span<const RowResult> rows,
                         MaskFills& masks, SliceOutcome& outcome) {
  for (size_t i = 0;; ++i) {
    const Result<AllowedTokens> allowed = i == 0 ? masks.Allowed(slice) : masks.Refill(slice);
    const bool goes_on = SayNext(s, rows[i], allowed, outcome);
    // What goes wrong after a draft goes wrong again in the next step, which has that row alone.
    if (i > 0 && outcome.tokens.size() == i) outcome.error.clear();
    if (!goes_on || i == s.draft.size()) return;
    if (outcome.tokens.back() != s.draft[i]) return;
    if (IsNoNumber(rows[i + 1])) return;
  }
}

Token StepSampler::Choose(const Sequence& s, std::span<const float> row, AllowedTokens allowed) {
  const SamplingParams& params = s.request.sampling;
  const Token token = sampler_.Choose(row, params, *s.past, allowed);
  if (token >= 0 || allowed.empty()) return token;
  // The request bans all that its mask allows, for example the end before min_tokens of a text that
  // is complete. The mask wins: else there would be no token to go on with.
  SamplingParams without_bans = params;
  without_bans.bad_words.clear();
  without_bans.logit_bias.clear();
  without_bans.min_tokens = 0;
  return sampler_.Choose(row, without_bans, *s.past, allowed);
}

std::span<const float> StepSampler::LogitsOf(const RowResult& row) {
  if (row.top.empty()) return row.logits;
  spread_.assign(vocab_size_, -std::numeric_limits<float>::infinity());
  for (const TokenLogit& one : row.top) spread_[static_cast<size_t>(one.token)] = one.logit;
  return spread_;
}

Token StepSampler::ChooseFrom(const Sequence& s, const RowResult& row, AllowedTokens allowed) {
  if (row.logits.empty() && row.top.empty()) return row.token;
  if (row.logits.empty() && IsNoNumber(row)) return -1;
  const std::span<const float> logits = LogitsOf(row);
  const Token token = Choose(s, logits, allowed);
  // An infinite logit is as little an answer as NaN: the row's request fails alone.
  const bool is_answer = token >= 0 && std::isfinite(logits[static_cast<size_t>(token)]);
  return is_answer ? token : -1;
}

bool StepSampler::SayNext(Sequence& s, const RowResult& row, Result<AllowedTokens> allowed,
                          SliceOutcome& outcome) {
  if (!allowed.ok()) {
    outcome.error = allowed.status().message();
    outcome.failure = Finish::kMask;
    return false;
  }
  const auto index = s.num_generated() + static_cast<int>(outcome.tokens.size());
  if (on_logits_) on_logits_(s.id, index, row.logits);
  const Token token = ChooseFrom(s, row, *allowed);
  if (token < 0) {
    const bool masked = !allowed->empty() && std::isfinite(row.logits[0]);
    outcome.error = masked ? "the mask allows nothing" : kNoNumbers;
    outcome.failure = masked ? Finish::kMask : Finish::kError;
    return false;
  }
  s.past->Append(token);
  outcome.tokens.push_back(token);
  const int num_logprobs = s.request.sampling.num_logprobs;
  if (num_logprobs >= 0)
    outcome.logprobs.push_back(logprobs_.Read(row.logits, token, num_logprobs));
  TokenMask* mask = s.request.mask.get();
  if (mask != nullptr && !mask->Accept(token)) {
    outcome.error = "the mask refuses a token that it allowed";
    return false;
  }
  outcome.stops = mask != nullptr ? mask->is_finished() : EndsSequence(s.request.sampling, token);
  return !outcome.stops;
}

}  // namespace hearth
