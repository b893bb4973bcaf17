// SPDX-License-Identifier: Apache-2.0
#include "engine/step_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hearth {
namespace {

struct Machine {
  double a = 20'000, b = 300, c = 1500, d = 0.2, e = 0;
  ExpertCounts experts = {};
  int64_t Us(const StepShape& shape) const {
    const double share = ShareOfExperts(experts, shape.prefill_tokens + shape.decode_slices);
    return static_cast<int64_t>(a + b * shape.prefill_tokens + c * shape.decode_slices +
                                d * static_cast<double>(shape.context) + e * share);
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

TEST(StepModel, KnowsHowManyExpertsTokensChoose) {
  EXPECT_EQ(ShareOfExperts({}, 100), 0) << "dense";
  EXPECT_EQ(ShareOfExperts({32, 4}, 0), 0);
  EXPECT_DOUBLE_EQ(ShareOfExperts({32, 4}, 1), 4.0 / 32);
  EXPECT_DOUBLE_EQ(ShareOfExperts({32, 4}, 2), 1 - (28.0 / 32) * (28.0 / 32));
  EXPECT_DOUBLE_EQ(ShareOfExperts({8, 8}, 1), 1);
  EXPECT_GT(ShareOfExperts({32, 4}, 64), 0.999);
}

TEST(StepModel, LearnsWhatReadingExpertsTakes) {
  std::mt19937 random(5);
  Machine machine{20'000, 700, 1500, 0.2, 40'000, {32, 4}};
  StepModel knows(machine.experts), does_not;
  for (int i = 0; i < 100; ++i) {
    StepShape shape = RandomShape(random);
    if (i % 2 == 0) shape.prefill_tokens = static_cast<int>(random() % 24);
    knows.Observe(shape, machine.Us(shape));
    does_not.Observe(shape, machine.Us(shape));
  }
  double worst = 0;
  for (const int prefill : {0, 4, 8, 16, 32, 64, 128}) {
    const StepShape shape{prefill, 2, 1000};
    const double us = static_cast<double>(machine.Us(shape));
    EXPECT_NEAR(knows.PredictUs(shape), us, 0.02 * us) << prefill;
    worst = std::max(worst, std::abs(does_not.PredictUs(shape) - us) / us);
  }
  EXPECT_GT(worst, 0.15) << "a line is enough for this machine: it shows nothing";
  const StepShape streams{0, 2, 1000};
  EXPECT_NEAR(knows.PredictWithAllExpertsUs(streams) - knows.PredictUs(streams),
              machine.e * (28.0 / 32) * (28.0 / 32), 0.05 * machine.e);
}

TEST(StepModel, ADenseModelHasNoExpertTerm) {
  std::mt19937 random(6);
  const Machine machine;
  StepModel model;
  for (int i = 0; i < 60; ++i) {
    const StepShape shape = RandomShape(random);
    model.Observe(shape, machine.Us(shape));
  }
  EXPECT_EQ(model.coefficients()[4], 0);
  const StepShape streams{0, 8, 1000};
  EXPECT_EQ(model.PredictWithAllExpertsUs(streams), model.PredictUs(streams));
}

TEST(StepModel, FollowsAMachineThatBecomesSlower) {
  std::mt19937 random(2);
  Machine machine;
  StepModel model;
  for (int i = 0; i < 500; ++i) {
    if (i == 100) machine = {60'000, 900, 4500, 0.6, 0, {}};
    const StepShape shape = RandomShape(random);
    model.Observe(shape, machine.Us(shape));
  }
  const StepShape shape{200, 8, 10'000};
  const double us = static_cast<double>(machine.Us(shape));
  EXPECT_NEAR(model.PredictUs(shape), us, 0.1 * us);
}

TEST(StepModel, FollowsTheMachinesPaceWithinSomeSteps) {
  std::mt19937 random(7);
  const Machine machine;
  StepModel model;
  const StepShape other{300, 2, 20'000};  // not seen while the pace changes
  const double us = static_cast<double>(machine.Us(other));
  double pace = 1;
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      const StepShape shape{8, 8, 1000};
      model.Observe(shape, static_cast<int64_t>(pace * static_cast<double>(machine.Us(shape))));
    }
    return model.PredictUs(other) / us;
  };
  for (int i = 0; i < 60; ++i) {
    const StepShape shape = RandomShape(random);
    model.Observe(shape, machine.Us(shape));
  }
  pace = 3;
  EXPECT_GT(run(30), 1.8) << "most of it, though these steps say nothing about the other";
  run(300);
  pace = 1;
  EXPECT_NEAR(run(30), 1, 0.3);
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
