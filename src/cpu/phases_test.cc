// SPDX-License-Identifier: Apache-2.0
#include "cpu/phases.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// A clock that the test sets: three workers.
struct FakeStep {
  PhaseReading reading;
  PhaseTotals totals;
  PhaseClock clock{&totals, 3, [this] { return reading; }};

  // A loop of so many nanoseconds in which the workers were busy for `busy` in sum.
  void Loop(int64_t wall, int64_t busy) {
    reading.now += wall;
    reading.loops += wall;
    reading.busy += busy;
  }
  void Serial(int64_t wall) { reading.now += wall; }
};

TEST(PhaseClock, ChargesTimeToThePhaseThatBegan) {
  FakeStep step;
  step.Serial(1000);  // before the step: nobody's
  step.clock.Enter(StepPhase::kSmall);
  step.Serial(10);
  step.clock.Enter(StepPhase::kProjections);
  step.Loop(100, 300);
  step.clock.Enter(StepPhase::kSmall);
  step.Serial(20);
  step.clock.Enter(StepPhase::kHead);
  step.Loop(50, 150);
  step.clock.EndStep();
  EXPECT_NEAR(step.totals[StepPhase::kSmall].seconds, 30e-9, 1e-15);
  EXPECT_NEAR(step.totals[StepPhase::kProjections].seconds, 100e-9, 1e-15);
  EXPECT_NEAR(step.totals[StepPhase::kHead].seconds, 50e-9, 1e-15);
  EXPECT_EQ(step.totals[StepPhase::kAttention].seconds, 0);
  EXPECT_NEAR(step.totals.sum().seconds, 180e-9, 1e-15) << "the whole step, nothing twice";
  EXPECT_EQ(step.totals.steps, 1);
}

TEST(PhaseClock, TimeBetweenStepsIsNobodys) {
  FakeStep step;
  for (int i = 0; i < 2; ++i) {
    step.clock.Enter(StepPhase::kAttention);
    step.Loop(10, 30);
    step.clock.EndStep();
    step.Serial(1000);
  }
  EXPECT_NEAR(step.totals.sum().seconds, 20e-9, 1e-15);
  EXPECT_EQ(step.totals.steps, 2);
}

TEST(PhaseClock, WaitingIsWhatWorkersDidNotWork) {
  FakeStep step;
  step.clock.Enter(StepPhase::kAttention);
  step.Loop(100, 240);  // 60 of 300 idle at the barrier
  step.Serial(30);      // two workers wait for the caller
  step.clock.Enter(StepPhase::kHead);
  step.Loop(100, 300);
  step.clock.EndStep();
  EXPECT_NEAR(step.totals[StepPhase::kAttention].waiting, (60 + 2 * 30) / 3.0 * 1e-9, 1e-15);
  EXPECT_EQ(step.totals[StepPhase::kHead].waiting, 0);
  EXPECT_NEAR(step.totals.sum().waiting, 40e-9, 1e-15);
  EXPECT_NEAR(step.totals[StepPhase::kAttention].alone, 30e-9, 1e-15);
  EXPECT_EQ(step.totals[StepPhase::kHead].alone, 0);
  EXPECT_NEAR(step.totals.sum().alone, 30e-9, 1e-15);
}

TEST(PhaseClock, CountsExpertsByLayer) {
  FakeStep step;
  step.clock.CountExperts(2, 5);
  step.clock.CountExperts(0, 1);
  step.clock.CountExperts(2, 3);
  EXPECT_EQ(step.totals.experts_read, (std::vector<int64_t>{1, 0, 8}));
}

TEST(PhaseClock, OffReadsNoClock) {
  PhaseClock clock(nullptr, 2, []() -> PhaseReading {
    ADD_FAILURE() << "the clock was read";
    return {};
  });
  EXPECT_FALSE(clock.on());
  clock.Enter(StepPhase::kHead);
  clock.EndStep();
}

}  // namespace
}  // namespace hearth
