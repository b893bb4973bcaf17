// SPDX-License-Identifier: Apache-2.0
// How many tokens of prompts a step may have: as many as fit the step's time by what the steps
// before it taught.
#pragma once
#include <cstdint>
#include <limits>

#include "engine/step_model.h"
namespace hearth {

struct ChunkOptions {
  int min_chunk = 8;  // SchedulerOptions has the meaning of these
  int max_step_tokens = 2048;
  int64_t itl_target_us = 200'000;
  int64_t quiet_step_us = 1'000'000;
  ExpertCounts experts;
};

// A step is Begin, any number of Fits, Observe; one that failed is not observed. Pure: the same
// steps give the same chunks. Thread: one.
class ChunkControl {
 public:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  explicit ChunkControl(const ChunkOptions& options);

  // The step has these streams in it, and no prompt yet. It should take no longer than `most_us`,
  // and has no chunk that is chosen to learn from unless it `may_try`.
  void Begin(const StepShape& streams, double most_us = kUnlimited, bool may_try = true);
  // What is kept of a step that was left for another one, which then begins; and back to it.
  struct UnderWay;
  UnderWay Leave() const { return now_; }
  void GoOn(const UnderWay& step) { now_ = step; }
  // How many tokens the step may take, beside what `shape` has already, of a prompt of which
  // `position` tokens are computed; 0 when it is full. A step always takes min_chunk in all.
  int Fits(const StepShape& shape, int position);
  // The step had this shape and took so long. `has_more`: prompts had more to give than fitted.
  void Observe(const StepShape& shape, bool has_more, int64_t us);

  const StepModel& model() const { return model_; }
  // How long a step may take beside no stream.
  double quiet_us() const;
  double limit_us() const { return now_.limit_us; }  // of the step that began last

  // Chunks that are chosen to learn from.
  enum class Trial : uint8_t { kNone, kLarger, kLeast };
  Trial trial() const { return now_.trial; }

  // The step that began last.
  struct UnderWay {
    StepShape streams;
    double limit_us = 0;
    double bound_us = 0;  // on a step beside streams: itl_target_us, or less on a fast machine
    double least_us = 0;  // with experts: the bound, or a step that reads them all if that is more
    Trial trial = Trial::kNone;
    int trial_total = 0;  // of a larger one; 0: not decided
  };

 private:
  double Calmed(int64_t us, double times) const;
  void Sample(const StepShape& shape, double took_us);
  int Within(double us, const StepShape& shape, int position) const;
  int Total(const StepShape& shape, int position) const;
  void Learn(const StepShape& shape, bool has_more, double took_us);
  void Correct(const StepShape& shape, double took_us);
  void JudgeTrial(bool has_more, double took_us);

  const ChunkOptions options_;
  StepModel model_;
  UnderWay now_;
  double scale_ = 1;  // shortens chunks while steps take longer than the model says
  double allowance_;  // with experts: of least_us_, for prompts
  int largest_ = 0;   // chunk so far
  // Steps beside streams until the next ones.
  int trial_every_, until_trial_, until_least_;
  int until_sample_;        // steps with prompts until the next one of the smallest chunk
  double smallest_us_ = 0;  // what one takes; 0: none was seen
};

}  // namespace hearth
