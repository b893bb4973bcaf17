// SPDX-License-Identifier: Apache-2.0
#include "engine/chunk_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace hearth {
namespace {

// Prompts without end beside a number of streams, on a machine that the test is.
class Steps {
 public:
  using Machine = std::function<double(const StepShape&)>;
  Steps(const ChunkOptions& options, Machine machine)
      : control_(options), machine_(std::move(machine)) {}

  // One step; how many tokens of prompts it had.
  int Step(int streams, bool has_prompts = true) {
    StepShape shape{0, streams, 100 * streams};
    control_.Begin(shape);
    if (has_prompts) shape.prefill_tokens = control_.Fits(shape, 0);
    shape.context += int64_t{shape.prefill_tokens} * shape.prefill_tokens / 2;
    last_us_ = machine_(shape);
    control_.Observe(shape, has_prompts, static_cast<int64_t>(last_us_));
    return shape.prefill_tokens;
  }
  // The mean chunk of so many steps.
  double Chunk(int streams, int count) {
    double sum = 0;
    longest_us_ = 0;
    for (int i = 0; i < count; ++i) {
      sum += Step(streams);
      longest_us_ = std::max(longest_us_, last_us_);
    }
    return sum / count;
  }
  void set_machine(Machine machine) { machine_ = std::move(machine); }
  ChunkControl& control() { return control_; }
  double last_us() const { return last_us_; }
  double longest_us() const { return longest_us_; }

 private:
  ChunkControl control_;
  Machine machine_;
  double last_us_ = 0, longest_us_ = 0;
};

bool IsLarger(const ChunkControl& control) {
  return control.trial() == ChunkControl::Trial::kLarger;
}

constexpr ExpertCounts kExperts{32, 4};

// Like the 20b: most of a small step's time goes into reading experts.
double ExpertMachine(const StepShape& shape) {
  const int tokens = shape.prefill_tokens + shape.decode_slices;
  return 60'000 + 4'000.0 * tokens + 340'000 * ShareOfExperts(kExperts, tokens);
}

double DenseMachine(const StepShape& shape) {
  return 20'000 + 4'000.0 * (shape.prefill_tokens + shape.decode_slices);
}

ChunkOptions Bound(int64_t itl_us, const ExpertCounts& experts = {}) {
  ChunkOptions options;
  options.itl_target_us = itl_us;
  options.experts = experts;
  return options;
}

TEST(ChunkControl, FillsTheBoundOfAMachineWithExperts) {
  Steps steps(Bound(600'000, kExperts), ExpertMachine);
  for (int i = 0; i < 40; ++i) steps.Step(8, false);
  steps.Chunk(8, 20);
  // 60 + 340 + 4 (8 + n) = 600: 42 tokens. As this machine never surprises, there may be more.
  const double chunk = steps.Chunk(8, 200);
  EXPECT_GT(chunk, 40);
  EXPECT_LT(chunk, 75);
  EXPECT_LE(steps.longest_us(), 1.5 * 600'000);
}

TEST(ChunkControl, FillsTheBoundOfADenseMachine) {
  Steps steps(Bound(200'000), DenseMachine);
  for (int i = 0; i < 40; ++i) steps.Step(8, false);
  steps.Chunk(8, 20);
  EXPECT_NEAR(steps.Chunk(8, 200), 37, 2);
  EXPECT_LE(steps.longest_us(), 1.3 * 200'000);
}

TEST(ChunkControl, ABoundThatIsLessThanReadingAllExpertsGrows) {
  Steps steps(Bound(300'000, kExperts), ExpertMachine);
  for (int i = 0; i < 40; ++i) steps.Step(8, false);
  steps.Chunk(8, 20);
  EXPECT_GT(steps.Chunk(8, 100), 14) << "8 tokens read the same experts and take as long to read";
  EXPECT_LE(steps.longest_us(), 1.5 * 432'000);
}

TEST(ChunkControl, UnlearnsASlowTime) {
  for (const bool dense : {false, true}) {
    for (const double factor : {1.5, 3.0, 5.0}) {
      const Steps::Machine machine = dense ? DenseMachine : ExpertMachine;
      const double bound_us = dense ? 200'000 : 600'000;
      Steps steps(Bound(static_cast<int64_t>(bound_us), dense ? ExpertCounts{} : kExperts),
                  machine);
      for (int i = 0; i < 20; ++i) steps.Step(8, false);
      const double before = steps.Chunk(8, 100);
      steps.set_machine([&](const StepShape& shape) { return factor * machine(shape); });
      steps.Chunk(8, 300);
      steps.set_machine(machine);
      steps.Chunk(8, 75);
      EXPECT_GT(steps.Chunk(8, 50), 0.7 * before) << "dense: " << dense << ", " << factor;
      EXPECT_LT(steps.longest_us(), 1.5 * bound_us) << "dense: " << dense << ", " << factor;
    }
  }
}

TEST(ChunkControl, KnowsWhatItHasNotSeen) {
  // Only streams so far: nothing says what a token of a prompt takes.
  Steps steps(Bound(600'000, kExperts), ExpertMachine);
  for (int i = 0; i < 40; ++i) steps.Step(8, false);
  EXPECT_LE(steps.Step(8), 64);
}

TEST(ChunkControl, SeveralPromptsShareWhatOneWouldGet) {
  Steps steps(Bound(600'000, kExperts), ExpertMachine);
  for (int i = 0; i < 20; ++i) steps.Step(8, false);
  steps.Chunk(8, 100);
  for (int i = 0; i < 600; ++i) {
    StepShape shape{0, 8, 800};
    ChunkControl& control = steps.control();
    control.Begin(shape);
    const int alone = control.Fits(shape, 0);
    for (int left = 1000; left > 0 && control.Fits(shape, 0) > 0; --left) {
      shape.prefill_tokens += std::min(5, control.Fits(shape, 0));
    }
    EXPECT_NEAR(shape.prefill_tokens, alone, 1) << "trial: " << IsLarger(control);
    shape.context += int64_t{shape.prefill_tokens} * shape.prefill_tokens / 2;
    control.Observe(shape, true, static_cast<int64_t>(ExpertMachine(shape)));
  }
}

TEST(ChunkControl, TrialsAreBoundedAndBecomeRare) {
  Steps steps(Bound(600'000, kExperts), ExpertMachine);
  for (int i = 0; i < 20; ++i) steps.Step(8, false);
  int trials = 0;
  for (int i = 0; i < 3000; ++i) {
    steps.Step(8);
    trials += IsLarger(steps.control()) ? 1 : 0;
    if (IsLarger(steps.control())) {
      EXPECT_LE(steps.last_us(), 1.2 * steps.control().limit_us());
    }
  }
  EXPECT_GE(trials, 5);
  EXPECT_LE(trials, 30) << "less than one in a hundred";
}

TEST(ChunkControl, AMachineThatSlowsDownIsBelievedAtOnce) {
  Steps steps(Bound(600'000, kExperts), ExpertMachine);
  for (int i = 0; i < 20; ++i) steps.Step(8, false);
  const double before = steps.Chunk(8, 100);
  steps.set_machine([](const StepShape& shape) { return 1.3 * ExpertMachine(shape); });
  for (int i = 0; i < 6; ++i) steps.Step(8);
  EXPECT_LE(steps.last_us(), 1.15 * steps.control().limit_us());
  EXPECT_LT(steps.last_us(), 1.5 * 600'000);
  EXPECT_LT(steps.Step(8), before + 10);
}

TEST(ChunkControl, ChunksGrowBackFromTheSmallest) {
  // One of two steps takes twice as long for a while: chunks are cut until only min_chunk is left.
  Steps steps(Bound(600'000, kExperts), ExpertMachine);
  for (int i = 0; i < 20; ++i) steps.Step(8, false);
  const double before = steps.Chunk(8, 100);
  int i = 0;
  steps.set_machine([&](const StepShape& shape) { return (++i % 2 + 1) * ExpertMachine(shape); });
  steps.Chunk(8, 30);
  steps.set_machine(ExpertMachine);
  steps.Chunk(8, 150);
  EXPECT_GT(steps.Chunk(8, 50), 0.8 * before);
}

// A small model: a step without prompts takes 1 ms, a token of a prompt 0.05.
double FastMachine(const StepShape& shape) {
  return 1'000 + 50.0 * (shape.prefill_tokens + shape.decode_slices);
}

TEST(ChunkControl, OnAFastMachineStreamsWaitLessThanTheBoundAllows) {
  Steps steps(Bound(200'000), FastMachine);
  for (int i = 0; i < 40; ++i) steps.Step(4, false);
  steps.Chunk(4, 100);
  // Eight tokens beside four streams take 1.6 ms; five times that are 8 ms: some 136 tokens. It
  // stays so, though all steps are alike.
  const double chunk = steps.Chunk(4, 2000);
  EXPECT_GT(chunk, 110);
  EXPECT_LT(chunk, 150);
  EXPECT_LT(steps.longest_us(), 1.5 * 8'000);
}

TEST(ChunkControl, OnAFastMachineWhoComesNextWaitsForAShortStep) {
  Steps steps(Bound(200'000), FastMachine);
  steps.Chunk(0, 40);
  // Twenty times 1.4 ms: 540 tokens.
  const double chunk = steps.Chunk(0, 1000);
  EXPECT_GT(chunk, 460);
  EXPECT_LT(chunk, 560);
  EXPECT_LT(steps.longest_us(), 1.5 * 28'000);
}

TEST(ChunkControl, AMachineThatBecomesSlowGetsItsTimeBack) {
  Steps steps(Bound(200'000), FastMachine);
  steps.Chunk(0, 200);
  steps.set_machine([](const StepShape& shape) { return 8 * FastMachine(shape); });
  steps.Chunk(0, 400);
  EXPECT_GT(steps.Chunk(0, 200), 460);
}

}  // namespace
}  // namespace hearth
