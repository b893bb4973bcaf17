// SPDX-License-Identifier: Apache-2.0
// Simulated fleets: the model of a replica against the engine itself, and what must hold of any.
#include "plan/fleet.h"

#include <gmock/gmock.h>

#include <map>

namespace hearth {
namespace {

using ::testing::HasSubstr;

TimingModel Timing() { return TimingOfRates(2000, 400, 16); }

ServerShape Server(int tokens = 60'000) {
  ServerShape server;
  server.kv.groups = {{.window = 0, .block_bytes = 64, .num_blocks = tokens / 16}};
  server.options.scheduler.max_sequences = 32;
  server.options.scheduler.max_step_tokens = 512;
  server.options.scheduler.max_context = 32'768;
  return server;
}

FleetChats Chats(double rate, int64_t requests = 1500) {
  return {.rate = rate,
          .requests = requests,
          .turns = 5,
          .message = 80,
          .reply = 60,
          .system = 400,
          .apps = 8,
          .think_s = 10};
}

FleetOutcome Played(const FleetSetup& setup, const FleetChats& chats,
                    const ServerShape& server = Server()) {
  Result<FleetOutcome> outcome = SimulateFleet(FleetLoad(chats), setup, server, Timing());
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return outcome.ok() ? std::move(*outcome) : FleetOutcome{};
}

TEST(Fleet, TimingOfRatesHasTheRates) {
  const TimingModel timing = Timing();
  EXPECT_NEAR(timing.StepUs(16, 0), 1e6 * 16 / 400, 1);
  EXPECT_NEAR(timing.StepUs(512, 0) - timing.StepUs(256, 0), 1e6 * 256 / 2000, 1);
}

// How far the model may be off: its shares of cached tokens, and its 95th percentile.
struct Tolerance {
  double hits = 0.03, p95 = 0.20;
};

// The oracle: the same chats on the engine's own scheduler and cache.
void CompareWithEngine(const FleetSetup& setup, const FleetChats& chats, const ServerShape& server,
                       const Tolerance& tolerance = {}) {
  FleetSetup modelled = setup;
  modelled.uses_model = true;
  const FleetOutcome engine = Played(setup, chats, server), model = Played(modelled, chats, server);
  std::printf("%-12s hit %.3f %.3f, first p50 %.3f %.3f, p95 %.3f %.3f, tokens/s %.1f %.1f\n",
              NameOf(setup.policy), engine.hit_share, model.hit_share, engine.first_token_s.p50,
              model.first_token_s.p50, engine.first_token_s.p95, model.first_token_s.p95,
              engine.tokens_per_second, model.tokens_per_second);
  EXPECT_FALSE(engine.is_modelled);
  EXPECT_TRUE(model.is_modelled);
  EXPECT_EQ(engine.counted, model.counted);
  EXPECT_NEAR(model.hit_share, engine.hit_share, tolerance.hits);
  EXPECT_NEAR(model.first_token_s.p50 / engine.first_token_s.p50, 1, 0.20);
  EXPECT_NEAR(model.first_token_s.p95 / engine.first_token_s.p95, 1, tolerance.p95);
  EXPECT_NEAR(model.reply_s.p50 / engine.reply_s.p50, 1, 0.15);
  // With and without a prompt beside them gaps are of two lengths: only their middle is compared.
  EXPECT_NEAR(model.gap_s.p50 / engine.gap_s.p50, 1, 0.10);
  EXPECT_NEAR(model.tokens_per_second / engine.tokens_per_second, 1, 0.05);
}

TEST(Fleet, TheModelIsTheEngine) {
  for (const FleetPolicy policy : kFleetPolicies) {
    for (const int tokens : {24'000, 60'000}) {
      SCOPED_TRACE(Printf("%s, %d tokens", NameOf(policy), tokens));
      // Where caches are too small, which chat loses its prompt is chance.
      const Tolerance tolerance = tokens < 30'000 ? Tolerance{0.05, 0.40} : Tolerance{};
      CompareWithEngine({.replicas = 4, .policy = policy}, Chats(8), Server(tokens), tolerance);
    }
  }
}

// As a thousand replicas have them, with prompts as long as they are there.
TEST(Fleet, CoarsePagesAreNearTheEngine) {
  FleetChats chats = Chats(6);
  chats.system = 1000;
  chats.message = 150;
  for (const FleetPolicy policy : kFleetPolicies) {
    SCOPED_TRACE(NameOf(policy));
    CompareWithEngine({.replicas = 4, .policy = policy, .coarse_pages = true}, chats,
                      Server(120'000));
  }
}

TEST(Fleet, SessionHashingFindsWhatRoundRobinComputesAgain) {
  std::map<FleetPolicy, double> hits;
  for (const FleetPolicy policy : kFleetPolicies) {
    hits[policy] = Played({.replicas = 8, .policy = policy}, Chats(12)).hit_share;
  }
  EXPECT_GT(hits[FleetPolicy::kSession], hits[FleetPolicy::kRoundRobin] + 0.1);
  EXPECT_GT(hits[FleetPolicy::kPrecise], hits[FleetPolicy::kLeast] + 0.1);
  EXPECT_GT(hits[FleetPolicy::kSession], 0.7);
}

TEST(Fleet, TheSameSeedGivesTheSame) {
  for (const bool is_model : {false, true}) {
    const FleetSetup setup{.replicas = 3, .uses_model = is_model};
    const FleetOutcome a = Played(setup, Chats(8, 400)), b = Played(setup, Chats(8, 400));
    EXPECT_EQ(a.first_token_s.p95, b.first_token_s.p95);
    EXPECT_EQ(a.hit_share, b.hit_share);
    FleetChats other = Chats(8, 400);
    other.seed = 2;
    EXPECT_NE(Played(setup, other).first_token_s.p95, a.first_token_s.p95);
  }
}

TEST(Fleet, EveryRequestEndsOnce) {
  for (const bool is_model : {false, true}) {
    FleetSetup setup{.replicas = 4, .uses_model = is_model};
    setup.incident = {.fail_at_s = 30, .fail_count = 2, .restart_s = 5};
    const FleetOutcome outcome = Played(setup, Chats(10, 1000));
    EXPECT_EQ(outcome.requests, 1000);
    EXPECT_EQ(outcome.counted + outcome.refused, 900);  // a tenth is not counted
    EXPECT_GT(outcome.broken + outcome.resent, 0);
    int64_t in_moments = 0;
    int least = 4;
    for (const FleetMoment& m : outcome.moments) {
      in_moments += m.requests;
      least = std::min(least, m.least_up);
    }
    EXPECT_EQ(in_moments, 1000);
    EXPECT_EQ(least, 2);
    EXPECT_EQ(outcome.moments.back().least_up, 4);
  }
}

TEST(Fleet, ADeployReplacesAllInWavesAndBreaksNothing) {
  for (const bool is_model : {false, true}) {
    FleetSetup setup{.replicas = 8, .uses_model = is_model};
    const FleetOutcome quiet = Played(setup, Chats(12, 3000));
    setup.incident = {.deploy_at_s = 60, .wave_share = 0.25, .drain_s = 60, .restart_s = 10};
    const FleetOutcome deploy = Played(setup, Chats(12, 3000));
    EXPECT_EQ(deploy.broken, 0);
    EXPECT_EQ(deploy.resent, 0);
    EXPECT_LT(deploy.hit_share, quiet.hit_share);
    int least = 8;
    for (const FleetMoment& m : deploy.moments) least = std::min(least, m.least_up);
    EXPECT_EQ(least, 6);
    setup.incident.drain_s = 0;  // nobody waits for what runs
    EXPECT_GT(Played(setup, Chats(12, 3000)).broken, 0);
  }
}

TEST(Fleet, NobodyUpMeansWaiting) {
  FleetSetup setup{.replicas = 1};
  setup.incident = {.fail_at_s = 80, .restart_s = 15};
  const FleetOutcome outcome = Played(setup, Chats(1, 100));
  EXPECT_EQ(outcome.counted, 90);
  EXPECT_GT(outcome.first_token_s.p99, 5);
}

TEST(Fleet, ATierBringsBackWhatMemoryLost) {
  FleetSetup setup{.replicas = 8, .policy = FleetPolicy::kLeast};
  setup.uses_model = true;
  const FleetOutcome without = Played(setup, Chats(10), Server(16'000));
  setup.tier = {.tokens = 10'000'000, .is_shared = true, .tokens_per_s = 40'000};
  const FleetOutcome with = Played(setup, Chats(10), Server(16'000));
  EXPECT_EQ(without.fetched_share, 0);
  EXPECT_GT(with.fetched_share, 0.1);
  EXPECT_GT(with.hit_share, without.hit_share + 0.1);
  EXPECT_LT(with.first_token_s.p50, without.first_token_s.p50);
}

TEST(Fleet, AFasterReplicaGetsMore) {
  for (const FleetPolicy policy : {FleetPolicy::kLeast, FleetPolicy::kSession}) {
    FleetSetup setup{.replicas = 4, .fast_replicas = 1, .fast_times = 4, .policy = policy};
    EXPECT_GT(Played(setup, Chats(10)).busiest, 1.5) << NameOf(policy);
  }
}

TEST(Fleet, FindsTheFewestReplicas) {
  const LoadTarget95 target{.first_token_s = 0.6, .gap_s = 0.2};
  const auto load = [] { return FleetLoad(Chats(20, 800)); };
  Result<FleetSearch> found = FindReplicas(load, {}, 64, Server(), Timing(), target);
  ASSERT_TRUE(found.ok());
  ASSERT_GT(found->replicas, 1);
  for (const FleetOutcome& o : found->tried) {
    EXPECT_EQ(Meets(o, target), o.replicas >= found->replicas) << o.replicas;
  }
  found = FindReplicas(load, {}, 2, Server(), Timing(), {.first_token_s = 0.01, .gap_s = 0.2});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->replicas, 0);
}

TEST(Fleet, ARequestThatNeverFitsIsAMistake) {
  for (const bool is_model : {false, true}) {
    FleetChats chats = Chats(1, 10);
    chats.system = 40'000;
    const Result<FleetOutcome> outcome =
        SimulateFleet(FleetLoad(chats), {.uses_model = is_model}, Server(), Timing());
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.status().code(), Code::kInvalid);
  }
}

TEST(Fleet, IsToldInThreeWays) {
  FleetRecord r;
  r.replica = "a <fast> machine";
  r.load = "some chats";
  r.price = 1;
  r.incident.fail_at_s = 20;
  FleetOutcome o = Played({.replicas = 2}, Chats(4, 200));
  r.policies = {o};
  r.incidents = {o};
  r.search = {.replicas = 2, .tried = {o}};
  const std::string text = FleetText(r);
  EXPECT_THAT(text, HasSubstr("2 replicas are the fewest"));
  EXPECT_THAT(text, HasSubstr("session hash"));
  EXPECT_THAT(text, HasSubstr("cost: 2.00 an hour"));
  const Json json = FleetJson(r);
  EXPECT_EQ(*json.Find("schema")->string(), "hearth.plan.fleet");
  EXPECT_EQ(json.Find("incidents")->array()->front().Find("moments")->array()->size(), 60u);
  const std::string page = FleetPage(r);
  EXPECT_THAT(page, HasSubstr("a &lt;fast&gt; machine"));
  size_t pictures = 0;
  for (size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) {
    ++pictures;
  }
  EXPECT_EQ(pictures, 6u);
}

}  // namespace
}  // namespace hearth
