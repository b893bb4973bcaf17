// SPDX-License-Identifier: Apache-2.0
// The step's third act: rows of logits -> what every slice of the plan says.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/mask_fills.h"
#include "engine/sequence.h"
#include "sampling/logprobs.h"
#include "sampling/sampler.h"
namespace hearth {

// What the rows of one slice came to.
struct SliceOutcome {
  std::string error;  // not empty: its sequence ends, alone; the rest says nothing then
  Finish failure = Finish::kError;  // with `error`: how it ends
  std::vector<Token> tokens;  // said, in order; none while more of its tokens are to be computed
  bool stops = false;         // the last of `tokens` ends the sequence
  std::vector<Logprobs> logprobs;  // of `tokens`, when the request asks
  int first_scored = 0;            // the place in the prompt of the first of `prompt_logprobs`
  std::vector<Logprobs> prompt_logprobs;
};

// Chooses for one slice after the other; no choice depends on the neighbours. Touches of a sequence
// only what sampling remembers (`past`, the mask): its tokens are the scheduler's to append.
// Thread: one.
class StepSampler {
 public:
  // Sees the logits every token was sampled from.
  using OnLogits = std::function<void(SeqId id, int index, std::span<const float> logits)>;
  StepSampler(int vocab_size, OnLogits on_logits)
      : vocab_size_(static_cast<size_t>(vocab_size)), on_logits_(std::move(on_logits)) {}

  // One outcome for every slice; `planned` are their sequences, `rows` the plan's results, `masks`
  // filled for it. Good until the next call.
  std::span<const SliceOutcome> Sample(const StepPlan& plan, std::span<Sequence* const> planned,
                                       std::span<const RowResult> rows, MaskFills& masks);

 private:
  // Reads the prompt's own tokens off the rows before them. False: one holds no numbers.
  bool ScorePrompt(const Sequence& sequence, const SeqSlice& slice, std::span<const RowResult> rows,
                   SliceOutcome& outcome);
  // A slice whose last tokens are a draft has a row before each of them and one after: says tokens
  // row by row for as long as the token is the draft's next one. That is what plain decoding says.
  void SayAll(Sequence& sequence, size_t slice, std::span<const RowResult> rows, MaskFills& masks,
              SliceOutcome& outcome);
  // Says one more token from a row that follows everything said so far. False: there is nothing
  // after it, because it stops the sequence or the row holds no answer.
  bool SayNext(Sequence& sequence, const RowResult& row, Result<AllowedTokens> allowed,
               SliceOutcome& outcome);
  // -1: the row holds no answer.
  Token ChooseFrom(const Sequence& sequence, const RowResult& row, AllowedTokens allowed);
  Token Choose(const Sequence& sequence, std::span<const float> row, AllowedTokens allowed);
  // Logits as the sampler knows them: those that were not asked for are impossible.
  std::span<const float> LogitsOf(const RowResult& row);

  const size_t vocab_size_;
  const OnLogits on_logits_;
  Sampler sampler_;
  LogprobReader logprobs_;
  std::vector<float> spread_;  // LogitsOf's
  std::vector<SliceOutcome> outcomes_;
};

}  // namespace hearth
