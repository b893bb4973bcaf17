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
  std::vector<int> windows;  // one for each group; 0: it sees everything
  uint64_t seed = 0;
  float habit = 0;  // how much likelier than the rest a token's usual follower is

  // A cell is what one position keeps for later ones: the K and V of this model. `sums` has for
  // each group the sum of earlier cells, each times its distance, over all that the group shows.
  uint64_t Cell(Token token, int position, std::span<const uint64_t> sums) const {
    const auto where = static_cast<uint64_t>(position) << 32 | static_cast<uint32_t>(token);
    uint64_t full = 0, windowed = 0, factor = kGoldenRatio;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (windows[i] == 0) {
        full = sums[i];
      } else {
        windowed += sums[i] * factor;
        factor += 2 * kGoldenRatio;
      }
    }
    return MixBits(MixBits(where ^ seed) + full) + windowed;
  }
  // What a window shows of `cells`, the oldest first.
  static uint64_t WindowSum(int window, std::span<const uint64_t> cells) {
    uint64_t sum = 0;
    for (size_t d = 1; d < static_cast<size_t>(window) && d <= cells.size(); ++d) {
      sum += d * cells[cells.size() - d];
    }
    return sum;
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
    sums_.clear();
    for (const int window : model_.windows) {
      sums_.push_back(window == 0 ? full_ : SimModel::WindowSum(window, cells_));
    }
    cells_.push_back(model_.Cell(token, position, sums_));
    sum_ += cells_.back();
    full_ += sum_;  // every earlier cell is one further away
    last_ = token;
  }
  void Logits(std::span<float> out) const { model_.Logits(cells_.back(), last_, out); }

 private:
  const SimModel model_;
  std::vector<uint64_t> cells_, sums_;
  uint64_t sum_ = 0, full_ = 0;
  Token last_ = 0;
};

}  // namespace hearth
