// SPDX-License-Identifier: Apache-2.0
// The simulated model: what a position holds depends on its token and on everything the position
// sees, so that whatever goes wrong with blocks or tokens changes what is said next.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "sim/random.h"
namespace hearth {

struct SimModel {
  int vocab = 0;
  int window = 0;        // of the window group; 0: there is none
  bool has_full = true;  // at least one group is there
  uint64_t seed = 0;
  float habit = 0;  // how much likelier than the rest a token's usual follower is

  // A cell is what one position keeps for later ones: the K and V of this model. `full` and
  // `window` are sums of earlier cells, each times its distance, over all that the group shows.
  uint64_t Cell(Token token, int position, uint64_t full, uint64_t window_sum) const {
    const auto where = static_cast<uint64_t>(position) << 32 | static_cast<uint32_t>(token);
    return MixBits(MixBits(where ^ seed) + full) + window_sum * kGoldenRatio;
  }
  // After `last`, which the cell is of.
  void Logits(uint64_t cell, Token last, std::span<float> out) const {
    for (size_t i = 0; i < out.size(); ++i) {
      // Even in [-4, 4): warm requests have a choice, cold ones no ties to speak of.
      out[i] = static_cast<float>(MixBits(cell + i) >> 40) * 0x1p-21f - 4.0f;
    }
    // Text with habits repeats itself: drafts hold.
    const auto usual = MixBits(seed + static_cast<uint64_t>(last)) % out.size();
    out[static_cast<size_t>(usual)] += habit;
  }
};

// The model run for one sequence alone, cells in one long row: the oracle. Thread: one.
class LoneSim {
 public:
  explicit LoneSim(const SimModel& model) : model_(model) {}
  void Append(Token token) {
    const auto position = static_cast<int>(cells_.size());
    uint64_t window_sum = 0;
    for (int distance = 1; distance < model_.window && distance <= position; ++distance) {
      window_sum += static_cast<uint64_t>(distance) * cells_[cells_.size() - distance];
    }
    cells_.push_back(model_.Cell(token, position, model_.has_full ? full_ : 0, window_sum));
    sum_ += cells_.back();
    full_ += sum_;  // every earlier cell is one further away
    last_ = token;
  }
  void Logits(std::span<float> out) const { model_.Logits(cells_.back(), last_, out); }

 private:
  const SimModel model_;
  std::vector<uint64_t> cells_;
  uint64_t sum_ = 0, full_ = 0;
  Token last_ = 0;
};

}  // namespace hearth
