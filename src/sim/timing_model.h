// SPDX-License-Identifier: Apache-2.0
// How long a step takes on some machine, without running it: a curve over the tokens of the step
// and one over those whose logits are wanted, so much for every position they look at, and for the
// experts they choose. Calibrated by `hearth bench`.
#pragma once
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/step_model.h"
namespace hearth {

// A step reads the experts that its tokens choose; to read all of them takes `us`.
struct ExpertTiming {
  ExpertCounts counts;
  double us = 0;
};

// What a step has to do.
struct StepLoad {
  int64_t tokens = 0;
  int64_t rows = 0;              // of logits
  int64_t positions = 0;         // that decoded tokens look at, over all of them
  int64_t prompt_positions = 0;  // that tokens of prompts look at
};

class TimingModel {
 public:
  struct Point {
    double tokens = 0, us = 0;
  };
  // `points` ascend in tokens. Between two of them time is linear; beyond the last the slope of the
  // last two goes on; below the first the time is the first's. A larger step measured as shorter
  // than a smaller one is taken to be as long: it was noise.
  TimingModel(std::vector<Point> points, double us_per_position, const ExpertTiming& experts = {});

  // From the file that `hearth bench --json` writes: decode cases without context and the prefill
  // case give the curve, cases with context the rest; with --phases prompts have a price of their
  // own for what they look back at. kInvalid when there is too little.
  static Result<TimingModel> FromBench(const Json& bench);
  // gpt-oss-20b on two cores of an Emerald Rapids: docs/evidence/speed.md.
  static TimingModel TwentyB();

  double StepUs(const StepLoad& load) const;
  // Of a step that decodes.
  double StepUs(int64_t tokens, int64_t positions) const {
    return StepUs({.tokens = tokens, .rows = tokens, .positions = positions});
  }
  double StepUs(const StepPlan& plan) const;
  const std::vector<Point>& points() const { return points_; }
  double us_per_position() const { return us_per_position_; }
  const ExpertTiming& experts() const { return experts_; }
  // The same, but tokens of prompts, which look back together, take so much for a position.
  TimingModel WithPromptPositions(double us) const;
  // The same, with the model's head on a curve of its own over rows of logits: prompts have one.
  TimingModel WithHead(std::vector<Point> head) const;
  // The same machine, so many times slower.
  TimingModel Times(double factor) const;

 private:
  std::vector<Point> points_;
  std::vector<Point> head_;  // empty: `points_` has it
  double us_per_position_, us_per_prompt_position_;
  ExpertTiming experts_;
};

// Positions that the tokens of a slice look at, over all of them.
int64_t PositionsOf(const SeqSlice& slice);

}  // namespace hearth
