// SPDX-License-Identifier: Apache-2.0
#include "engine/step_model.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

struct Machine {
  double a = 20'000, b = 300, c = 1500, d = 0.2;
  int64_t Us(const StepShape& shape) const {
    return static_cast<int64_t>(a + b * shape.prefill_tokens + c * shape.decode_slices +
                                d * static_cast<double>(shape.context));
  }
};

StepShape RandomShape(std::mt19937& random) {
  const int prefill = random() % 3 == 0 ? 0 : static_cast<int>(random() % 400);
  return {prefill, static_cast<int>(random() % 16), static_cast<int64_t>(random() % 40'000)};
}

TEST(StepModel, KnowsNothingAtFirst) {
  const StepModel model;
  EXPECT_FALSE(model.measured());
  EXPECT_EQ(model.PredictUs({100, 1, 100}), 0);
}

TEST(StepModel, LearnsAMachine) {
  std::mt19937 random(1);
  const Machine machine;
  StepModel model;
  for (int i = 0; i < 60; ++i) {
    const StepShape shape = RandomShape(random);
    model.Observe(shape, machine.Us(shape));
  }
  for (int i = 0; i < 100; ++i) {
    const StepShape shape = RandomShape(random);
    const double us = static_cast<double>(machine.Us(shape));
    EXPECT_NEAR(model.PredictUs(shape), us, 0.02 * us);
  }
}

TEST(StepModel, FollowsAMachineThatBecomesSlower) {
  std::mt19937 random(2);
  Machine machine;
  StepModel model;
  for (int i = 0; i < 500; ++i) {
    if (i == 100) machine = {60'000, 900, 4500, 0.6};
    const StepShape shape = RandomShape(random);
    model.Observe(shape, machine.Us(shape));
  }
  const StepShape shape{200, 8, 10'000};
  const double us = static_cast<double>(machine.Us(shape));
  EXPECT_NEAR(model.PredictUs(shape), us, 0.1 * us);
}

TEST(StepModel, OneLongStepTeachesLittle) {
  std::mt19937 random(3);
  const Machine machine;
  StepModel model;
  for (int i = 0; i < 200; ++i) {
    const StepShape shape = RandomShape(random);
    model.Observe(shape, machine.Us(shape));
  }
  const StepShape shape{100, 8, 10'000};
  const double before = model.PredictUs(shape);
  model.Observe(shape, 60'000'000);  // a minute, because the machine slept
  EXPECT_LT(model.PredictUs(shape), 1.2 * before);
}

TEST(StepModel, NoCoefficientIsNegative) {
  StepModel model;
  for (int i = 0; i < 50; ++i) {  // more tokens take less time: noise, not knowledge
    model.Observe({i * 10, 0, 0}, 10'000 - i * 100);
    for (const double value : model.coefficients()) EXPECT_GE(value, 0);
  }
  EXPECT_GT(model.PredictUs({2000, 0, 0}), 0);
}

TEST(StepModel, KeepsWhatRecentStepsSayNothingAbout) {
  std::mt19937 random(4);
  const Machine machine;
  StepModel model;
  for (int i = 0; i < 100; ++i) {
    const StepShape shape = RandomShape(random);
    model.Observe(shape, machine.Us(shape));
  }
  for (int i = 0; i < 2000; ++i) {  // a lone stream for minutes
    const StepShape shape{0, 1, 100 + i};
    model.Observe(shape, machine.Us(shape));
  }
  EXPECT_NEAR(model.us_per_prefill_token(), machine.b, 0.3 * machine.b);
}

}  // namespace
}  // namespace hearth
