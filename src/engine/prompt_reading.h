// SPDX-License-Identifier: Apache-2.0
// What is asked of every position of a prompt, beside its K and V: log-probabilities, or a share in
// the pooled state. Such a position must be computed even where the cache has its blocks.
#pragma once
#include <span>
#include <vector>

#include "backend/backend.h"
#include "engine/sequence.h"
namespace hearth {

// Rows of logits that a step computes at most for log-probabilities of prompts: 64 rows of 201,088
// logits are 51 MB, and beyond that the head's product gains little from more rows at a time. So a
// prompt of any length is scored in bounded memory.
inline constexpr int kMaxScoredRows = 64;
// Beside streams fewer: the step model knows prompts without rows, and on gpt-oss-20b 16 of them
// are about 50 ms of a step.
inline constexpr int kScoredRowsBesideStreams = 16;

inline bool Scores(const Sequence& s) { return s.request.sampling.num_prompt_logprobs >= 0; }

// Positions below these are asked for something. The last one predicts no token of the prompt.
inline int NumToScore(const Sequence& s) { return Scores(s) ? s.num_prompt - 1 : 0; }
inline int NumToRead(const Sequence& s) { return s.request.pools ? s.num_prompt : NumToScore(s); }
// Rows of logits are still owed.
inline bool IsScoring(const Sequence& s) { return s.num_read < NumToScore(s); }

// How many tokens of the sequence may come out of the cache.
inline int MatchLimit(const Sequence& s) {
  const int all = static_cast<int>(s.tokens.size()) - 1;
  return s.num_read < NumToRead(s) ? s.num_read : all;
}

// Fills in what the slice has to bring beside its K and V. `slice.first`, `count` and
// `num_computed` are set; `num_drafted` of its tokens are a draft.
void AskSlice(Sequence& s, int num_drafted, SeqSlice& slice);

// The slice was computed.
void BookRead(Sequence& s, const SeqSlice& slice);

// The sum as a direction: what the mean is, up to its length, which is made 1.
std::vector<float> Embedding(std::span<const double> sum);

}  // namespace hearth
