// SPDX-License-Identifier: Apache-2.0
#include "engine/chunk_control.h"

#include <algorithm>

namespace hearth {
namespace {

// Chunks before anything was measured: small beside a stream, middling alone.
constexpr int kFirstChunkBesideStreams = 64;
constexpr int kFirstChunkAlone = 256;

// When streams alone already take the whole bound, prompts still lengthen the step by this share:
// less would starve them, and min_chunk alone could double a short step.
constexpr double kStretch = 1.25;

// A step with prompts is at most so many times as long as one with the smallest chunk, beside
// streams and alone: where steps are short, prompts lose little of their rate, and a stream beside
// them or whoever comes next does not wait for all that the bound would allow. One step in so many
// has the smallest chunk to know its time: what the model says of it is worth nothing while all
// chunks are alike.
constexpr double kCalm = 5, kCalmAlone = 20;
constexpr int kFirstSample = 16, kSampleEvery = 64;

// With experts, a step that reads any prompt at all reads nearly all of them. Prompts get time
// beyond that: a share of the bound, or of that step when it is longer. It grows while steps keep
// the bound and shrinks with each that takes kLong times as long, so that about one in a hundred
// does; the bound promises 1.5 in the 99th percentile.
constexpr double kFirstAllowance = 0.4, kLeastAllowance = 0.05, kMostAllowance = 0.55;
constexpr double kLong = 1.35, kAllowanceGrows = 1.004, kAllowanceShrinks = 0.8;

// A step beside streams that is longer than its limit by more than this shortens the next chunks.
constexpr double kTolerance = 1.1;

// A larger chunk may take this much of the limit by the model's word, or min_chunk tokens more than
// fit, when the model says that even those do not.
constexpr double kTrialStretch = 1.15;
// Trials that end within the limit make them more frequent, the others rarer. In the long run one
// step in kRarestTrial is one: they stay out of the 99th percentile.
constexpr int kFirstTrial = 8, kMostOftenTrial = 4, kRarestTrial = 256;
// One in so many steps has the smallest chunk while steps are planned for longer than the bound.
constexpr int kLeastEvery = 16;

StepShape With(StepShape shape, int tokens, int position) {
  // n tokens from position p on look at n p + n^2 / 2 positions.
  shape.prefill_tokens += tokens;
  shape.context += int64_t{tokens} * position + int64_t{tokens} * tokens / 2;
  return shape;
}

}  // namespace

ChunkControl::ChunkControl(const ChunkOptions& options)
    : options_(options),
      model_(options.experts),
      allowance_(kFirstAllowance),
      trial_every_(kFirstTrial),
      until_trial_(kFirstTrial),
      until_least_(kLeastEvery),
      until_sample_(kFirstSample) {}

double ChunkControl::quiet_us() const { return Calmed(options_.quiet_step_us, kCalmAlone); }

void ChunkControl::Begin(const StepShape& streams, double most_us, bool may_try) {
  now_ = UnderWay();
  now_.streams = streams;
  if (may_try && until_sample_ == 0) now_.trial = Trial::kLeast;
  if (streams.decode_slices == 0) {
    now_.limit_us = std::min(most_us, quiet_us());
    return;
  }
  if (may_try && until_trial_ == 0 && now_.trial == Trial::kNone) now_.trial = Trial::kLarger;
  if (may_try && until_least_ == 0) now_.trial = Trial::kLeast;
  now_.bound_us = Calmed(options_.itl_target_us, kCalm);
  now_.limit_us = std::max(now_.bound_us, kStretch * model_.PredictUs(streams));
  if (options_.experts.total > 0) {
    const double fixed_us = model_.PredictWithAllExpertsUs(streams);
    now_.least_us = std::max(now_.bound_us, fixed_us);
    now_.limit_us = std::max(now_.limit_us, fixed_us + allowance_ * now_.least_us);
  }
  now_.limit_us = std::min(now_.limit_us, most_us);
}

// `us`, or less where steps are short.
double ChunkControl::Calmed(int64_t us, double times) const {
  const auto most_us = static_cast<double>(us);
  return smallest_us_ > 0 ? std::min(most_us, times * smallest_us_) : most_us;
}

// What a step with a chunk of about the smallest takes.
void ChunkControl::Sample(const StepShape& shape, double took_us) {
  if (shape.prefill_tokens == 0) return;
  until_sample_ = std::max(0, until_sample_ - 1);
  if (shape.prefill_tokens > 2 * options_.min_chunk) return;
  until_sample_ = kSampleEvery;
  // One that the machine interrupted counts for little.
  smallest_us_ =
      smallest_us_ > 0 ? (smallest_us_ + std::min(took_us, 2 * smallest_us_)) / 2 : took_us;
}

// The most tokens with which the model says that the step takes no longer than `us`.
int ChunkControl::Within(double us, const StepShape& shape, int position) const {
  int low = 0, high = options_.max_step_tokens;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (model_.PredictUs(With(shape, middle, position)) <= us) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// How many the step may have in all, those in `shape` included.
int ChunkControl::Total(const StepShape& shape, int position) const {
  if (now_.trial == Trial::kLeast) return options_.min_chunk;
  const bool beside = now_.streams.decode_slices > 0;
  int total = beside ? kFirstChunkBesideStreams : kFirstChunkAlone;
  if (model_.measured()) {
    total = shape.prefill_tokens + Within(now_.limit_us, shape, position);
    // Beyond what was ever seen a line leads astray.
    const int known = std::max(kFirstChunkBesideStreams, 2 * largest_);
    if (beside) total = std::min(known, static_cast<int>(scale_ * total));
  }
  return std::max(total, options_.min_chunk);
}

int ChunkControl::Fits(const StepShape& shape, int position) {
  int total = Total(shape, position);
  if (now_.trial == Trial::kLarger) {
    // Decided once: beside what a trial has already, nothing fits by the model's word.
    if (now_.trial_total == 0) {
      const int most = Within(kTrialStretch * now_.limit_us, shape, position);
      now_.trial_total = std::max(total + options_.min_chunk, std::min(2 * total, most));
    }
    total = now_.trial_total;
  }
  return std::max(0, total - shape.prefill_tokens);
}

void ChunkControl::Observe(const StepShape& shape, bool has_more, int64_t us) {
  if (now_.streams.decode_slices > 0 && shape.prefill_tokens > 0) {
    Learn(shape, has_more, static_cast<double>(us));
  }
  Sample(shape, static_cast<double>(us));
  largest_ = std::max(largest_, shape.prefill_tokens);
  model_.Observe(shape, us);
}

void ChunkControl::Learn(const StepShape& shape, bool has_more, double took_us) {
  if (options_.experts.total > 0) {
    allowance_ = took_us > kLong * now_.least_us
                     ? std::max(kLeastAllowance, allowance_ * kAllowanceShrinks)
                     : std::min(kMostAllowance, allowance_ * kAllowanceGrows);
  }
  // Steps planned for longer than the bound rest on what the model says the streams take. Where
  // all chunks are alike it cannot tell streams from prompts; a small one tells.
  const bool is_stretched = now_.limit_us > kStretch * now_.bound_us;
  if (is_stretched) until_least_ = std::max(0, until_least_ - 1);
  switch (now_.trial) {
    case Trial::kLeast:
      until_least_ = kLeastEvery;
      return;
    case Trial::kLarger:
      return JudgeTrial(has_more, took_us);
    case Trial::kNone:
      if (has_more) until_trial_ = std::max(0, until_trial_ - 1);
      return Correct(shape, took_us);
  }
}

// The model fades slowly; a machine slows down at once. Where chunks come out too long beside
// streams they are cut at once and allowed to grow back slowly.
void ChunkControl::Correct(const StepShape& shape, double took_us) {
  if (took_us <= kTolerance * now_.limit_us) {
    scale_ = std::min(1.0, scale_ * 1.05);
  } else if (shape.prefill_tokens > options_.min_chunk) {
    scale_ = std::max(0.1, scale_ * std::max(0.5, now_.limit_us / took_us));
  }
}

// What the model believes dear it gives little of, and then never learns that it is not dear any
// more. So now and then a chunk is larger than it should be.
void ChunkControl::JudgeTrial(bool has_more, double took_us) {
  if (!has_more) return;  // the prompts were smaller than the trial: it comes later
  const bool holds = took_us <= kTolerance * now_.limit_us;
  trial_every_ = holds ? std::max(kMostOftenTrial, trial_every_ / 2)
                       : std::min(kRarestTrial, trial_every_ * 2);
  until_trial_ = trial_every_;
}

}  // namespace hearth
