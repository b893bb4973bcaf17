// SPDX-License-Identifier: Apache-2.0
// One row of logits, copied where it may be edited, and the passes over all of it: the largest, the
// weights and their sum, and the few candidates among very many tokens. The only code here whose
// time depends on the size of the vocabulary.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "sampling/candidates.h"
namespace hearth {

// Bit i % 32 of word i / 32 says whether token i may be chosen. Empty: every token may.
using AllowedTokens = std::span<const uint32_t>;

// -infinity means impossible; Load turns NaN and tokens that are not allowed into it. Keeps its
// memory between rows. Thread: one at a time.
class LogitRow {
 public:
  void Load(std::span<const float> logits, AllowedTokens allowed);
  int num_tokens() const { return num_tokens_; }
  // Null for ids beyond the row, which a request may name.
  float* Find(Token token) {
    const bool is_here = token >= 0 && token < num_tokens_;
    return is_here ? &logits_[static_cast<size_t>(token)] : nullptr;
  }

  // After the last edit, before anything below.
  void FindLargest();
  float largest() const { return largest_; }
  // The first token with the largest logit; -1 if none is possible.
  Token FirstLargest() const;
  // At least the `count` likeliest tokens, and few more unless many are tied; without weights.
  void CollectLikeliest(size_t count, Candidates& out);

  // weight = e^((logit - largest) * inverse_temperature), for a finite largest. Returns their sum.
  double Weigh(float inverse_temperature);
  // After Weigh with the same temperature: the mean of (logit - largest) * inverse_temperature over
  // all tokens, by their weights.
  double MeanWeighed(float inverse_temperature) const;
  // After Weigh: every token with a weight of at least `least` (and more than 0).
  void CollectHeaviest(float least, Candidates& out) const;
  // After Weigh: draws from all of them, as Candidates::Draw would.
  Token Draw(double u) const;

 private:
  static constexpr size_t kBlock = 64;  // floats; four cache lines

  std::vector<float> logits_;   // padded with -infinity to whole blocks
  std::vector<float> weights_;  // beside logits_
  std::vector<float> block_largest_, block_weights_;
  std::vector<float> some_largest_;  // room for a selection
  int num_tokens_ = 0;
  float largest_ = 0;
  double total_ = 0;
};

}  // namespace hearth
