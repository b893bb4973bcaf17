// SPDX-License-Identifier: Apache-2.0
#include "server/observe/agent_line.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

EngineSnapshot Waiting(double wait_s) {
  EngineSnapshot snapshot;
  snapshot.limits.max_running = 16;
  snapshot.limits.max_waiting = 256;
  snapshot.wait_s = wait_s;
  return snapshot;
}

constexpr AgentOptions kOptions{.slow_start_s = 40, .max_connections = 100};
constexpr double kLong = 1000;  // since it was ready

TEST(AgentLine, AsksForLessTheLongerTheWait) {
  AgentLine line(kOptions);
  EXPECT_EQ(line.Say(Waiting(0), false, kLong), "up ready 100% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(1.9), false, kLong), "up ready 100% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(2), false, kLong), "up ready 75% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(7), false, kLong), "up ready 50% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(500), false, kLong), "up ready 25% maxconn:32\n");
}

// A weight that followed every wait would move sessions back and forth.
TEST(AgentLine, ComesBackLaterThanItWent) {
  AgentLine line(kOptions);
  EXPECT_EQ(line.Say(Waiting(6), false, kLong), "up ready 50% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(3), false, kLong), "up ready 50% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(2.9), false, kLong), "up ready 75% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(1), false, kLong), "up ready 75% maxconn:32\n");
  EXPECT_EQ(line.Say(Waiting(0.9), false, kLong), "up ready 100% maxconn:32\n");
}

TEST(AgentLine, StartsSlowlyWithAnEmptyCache) {
  AgentLine line(kOptions);
  const char* const expected[] = {"25%", "50%", "75%", "100%", "100%"};
  for (int i = 0; i < 5; ++i) {
    const std::string said = line.Say(Waiting(0), false, 10.0 * i + 1);
    EXPECT_NE(said.find(expected[i]), std::string::npos) << said;
  }
  EngineSnapshot warm = Waiting(0);
  warm.tier.emplace();
  EXPECT_EQ(line.Say(warm, false, 0), "up ready 100% maxconn:32\n");
  EXPECT_EQ(AgentLine({.slow_start_s = 0}).Say(Waiting(0), false, 0), "up ready 100% maxconn:32\n");
  // The shorter of the two shares counts.
  EXPECT_EQ(line.Say(Waiting(50), false, 30), "up ready 25% maxconn:32\n");
}

TEST(AgentLine, SaysThatItLeaves) {
  AgentLine line(kOptions);
  EXPECT_EQ(line.Say(Waiting(0), true, kLong), "drain\n");
  EngineSnapshot snapshot = Waiting(0);
  snapshot.is_draining = true;
  EXPECT_EQ(line.Say(snapshot, false, kLong), "drain\n");
  snapshot = Waiting(0);
  snapshot.is_stalled = true;
  EXPECT_EQ(line.Say(snapshot, false, kLong), "down #stalled\n");
}

// For HAProxy 0 would be no limit at all.
TEST(AgentLine, BoundsConnectionsByWhatTheServerTakes) {
  EngineSnapshot snapshot = Waiting(0);
  snapshot.limits.max_running = 80;
  EXPECT_EQ(AgentLine(kOptions).Say(snapshot, false, kLong), "up ready 100% maxconn:100\n");
  snapshot.limits.max_waiting = 4;
  EXPECT_EQ(AgentLine(kOptions).Say(snapshot, false, kLong), "up ready 100% maxconn:84\n");
  EXPECT_EQ(AgentLine(kOptions).Say(EngineSnapshot(), false, kLong), "up ready 100% maxconn:100\n");
}

}  // namespace
}  // namespace hearth
