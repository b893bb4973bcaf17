// SPDX-License-Identifier: Apache-2.0
#include "plan/load.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// 10 ms for one token, 1 ms for each more.
TimingModel Timing() { return TimingModel({{1, 10'000}, {101, 110'000}}, 0); }

ServerShape Server(int blocks = 4096) {
  ServerShape server;
  server.kv.groups = {{.window = 0, .block_bytes = 64, .num_blocks = blocks}};
  server.options.scheduler.max_sequences = 64;
  server.options.scheduler.max_step_tokens = 512;
  server.options.scheduler.max_context = 4096;
  return server;
}

UserLoad Load(int users) {
  UserLoad load;
  load.users = users;
  load.prompt = 100;
  load.reply = 20;
  load.think_s = 1;
  return load;
}

LoadOutcome Played(const UserLoad& load, const ServerShape& server = Server()) {
  Result<LoadOutcome> outcome = SimulateLoad(load, server, Timing());
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return outcome.ok() ? *outcome : LoadOutcome{};
}

TEST(PlanLoad, OneUserWaitsForTheModelAlone) {
  const LoadOutcome outcome = Played(Load(1));
  // The prompt in one step, or in two: the engine does not know the machine at first.
  EXPECT_NEAR(outcome.first_token_s.p50, 0.109, 0.02);
  EXPECT_NEAR(outcome.gap_s.p50, 0.010, 1e-6);
  EXPECT_NEAR(outcome.mean_batch, 1, 1e-9);
  EXPECT_EQ(outcome.most_running, 1);
  EXPECT_EQ(outcome.refused, 0);
}

TEST(PlanLoad, ManyUsersShareTheMachine) {
  const LoadOutcome few = Played(Load(2)), many = Played(Load(30));
  EXPECT_GT(many.first_token_s.p95, few.first_token_s.p95);
  EXPECT_GT(many.tokens_per_second, few.tokens_per_second);
  EXPECT_GT(many.mean_batch, 2);
  EXPECT_LE(many.gap_s.p50, many.gap_s.p95);
  EXPECT_LE(many.gap_s.p95, many.gap_s.p99);
}

TEST(PlanLoad, SharedStartsAreCached) {
  UserLoad load = Load(4);
  const LoadOutcome plain = Played(load);
  load.shared = 96;
  EXPECT_LT(Played(load).first_token_s.p50, plain.first_token_s.p50 / 2);
}

TEST(PlanLoad, TheSameSeedGivesTheSame) {
  const LoadOutcome a = Played(Load(12)), b = Played(Load(12));
  EXPECT_EQ(a.first_token_s.p99, b.first_token_s.p99);
  EXPECT_EQ(a.tokens_per_second, b.tokens_per_second);
  UserLoad other = Load(12);
  other.seed = 2;
  EXPECT_NE(Played(other).tokens_per_second, a.tokens_per_second);
  EXPECT_GT(a.tokens_per_second, 0);
}

TEST(PlanLoad, NobodyThinksNoGap) {
  UserLoad load = Load(8);
  load.think_s = 0;
  const LoadOutcome outcome = Played(load);
  EXPECT_EQ(outcome.most_running, 8);
  EXPECT_GT(outcome.tokens_per_second, 0);
}

TEST(PlanLoad, UsersWithoutPausesDoNotWaitForEachOthersPrompts) {
  UserLoad load = Load(16);
  load.think_s = 0;
  load.reply = 60;
  // With equal lengths they go in step: 0.20 and 0.47.
  const LoadOutcome outcome = Played(load);
  EXPECT_LT(outcome.first_token_s.p50, 0.16);
  EXPECT_LT(outcome.first_token_s.p95, 0.35);
}

TEST(PlanLoad, LongerOnesThatDoNotFitAreCutToTheMean) {
  UserLoad load = Load(2);
  load.prompt = 3500;  // of 4,096; half as much again does not fit
  EXPECT_GT(Played(load).tokens_per_second, 0);
}

TEST(PlanLoad, ReplicasAreTheFewestThatDo) {
  const LoadTarget95 target{.first_token_s = 0.5, .gap_s = 0.2};
  Result<ReplicaPlan> plan = PlanReplicas(Load(60), Server(), Timing(), target);
  ASSERT_TRUE(plan.ok());
  ASSERT_GT(plan->replicas, 1);
  EXPECT_TRUE(Meets(plan->outcome, target));
  EXPECT_EQ(plan->users_each, (60 + plan->replicas - 1) / plan->replicas);
  const int fewer = plan->replicas - 1;
  EXPECT_FALSE(Meets(Played(Load((60 + fewer - 1) / fewer)), target));
}

TEST(PlanLoad, SomeTargetsAreNotMetByAnyNumber) {
  Result<ReplicaPlan> plan =
      PlanReplicas(Load(3), Server(), Timing(), {.first_token_s = 0.05, .gap_s = 0.2});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->replicas, 0);
  EXPECT_GT(plan->outcome.first_token_s.p95, 0.05);
}

TEST(PlanLoad, ARequestThatNeverFitsIsAMistake) {
  UserLoad load = Load(1);
  load.prompt = 5000;
  const Result<LoadOutcome> outcome = SimulateLoad(load, Server(), Timing());
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), Code::kInvalid);
}

TEST(PlanLoad, Percentiles) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(PlanPercentilesOf(values).p50, 51);
  EXPECT_EQ(PlanPercentilesOf(values).p95, 96);
  EXPECT_EQ(PlanPercentilesOf(values).p99, 100);
  EXPECT_EQ(PlanPercentilesOf({}).p99, 0);
  EXPECT_EQ(PlanPercentilesOf({3}).p50, 3);
}

}  // namespace
}  // namespace hearth
