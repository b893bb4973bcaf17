// SPDX-License-Identifier: Apache-2.0
#include "backend/step_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "backend/gated_backend.h"
#include "testing/fake_backend.h"

namespace hearth {
namespace {

// Time passes only inside the gate, and each member's steps cost what the test says.
struct Contest {
  std::atomic<int64_t> now_us{0};
  StepGate gate{[this] { return now_us.load(); }};
  std::atomic<int> inside{0}, most_inside{0};

  // Steps of `cost_us` until the gate's time is over; how much time it got. The next step begins at
  // once, as an engine's does.
  int64_t Play(int64_t cost_us, int64_t until_us, std::atomic<int>& ready, int num_players) {
    StepGate::Member member(gate);
    ++ready;
    while (ready < num_players) std::this_thread::yield();
    int64_t got_us = 0;
    while (now_us < until_us) {
      member.Enter();
      most_inside = std::max<int>(most_inside, ++inside);
      // Long enough that the others are waiting when it leaves.
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      now_us += cost_us;
      got_us += cost_us;
      --inside;
      member.Leave();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return got_us;
  }
};

TEST(StepGate, OneAtATimeAndTimeIsSharedAmongThree) {
  Contest contest;
  const int64_t costs[] = {1000, 3000, 2000};
  int64_t got[3] = {};
  std::atomic<int> ready{0};
  std::vector<std::thread> players;
  for (int i = 0; i < 3; ++i) {
    players.emplace_back([&, i] { got[i] = contest.Play(costs[i], 600'000, ready, 3); });
  }
  for (std::thread& player : players) player.join();
  EXPECT_EQ(contest.most_inside, 1);
  // Turn by turn they would get 100, 300 and 200 thousand; by time each gets about 200.
  for (const int64_t each : got) {
    EXPECT_GT(each, 140'000);
    EXPECT_LT(each, 260'000);
  }
}

TEST(StepGate, WhoRestedDoesNotGetItAllBack) {
  int64_t now_us = 0;
  StepGate gate([&] { return now_us; });
  StepGate::Member busy(gate);
  for (int i = 0; i < 100; ++i) {
    busy.Enter();
    now_us += 1000;
    busy.Leave();
  }
  // A newcomer has used nothing; it must not go a hundred times in a row.
  StepGate::Member late(gate);
  late.Enter();
  now_us += 5000;
  std::atomic<bool> went{false};
  std::thread waiting([&] {
    busy.Enter();
    went = true;
    busy.Leave();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(went);
  late.Leave();
  waiting.join();  // hangs if the newcomer were always first
  EXPECT_TRUE(went);
}

TEST(StepGate, ABackendThatFailsLeavesTheGate) {
  StepGate gate;
  testing::FakeOptions options;
  options.before_run = [](const StepPlan&) { return Status(Code::kIo, "no"); };
  const auto failing = BehindGate(std::make_unique<testing::FakeBackend>(options), gate);
  const auto other =
      BehindGate(std::make_unique<testing::FakeBackend>(testing::FakeOptions()), gate);
  StepPlan plan;
  plan.slices.resize(1);  // without any there is nothing to fail at
  EXPECT_EQ(other->vocab_size(), 64);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(RunStep(*failing, plan).ok());
    EXPECT_TRUE(RunStep(*other, plan).ok());
  }
}

// Between two layers the cores go to an engine that used less, without the step hearing of it.
TEST(StepGate, AStepMakesRoomForARivalBetweenItsLayers) {
  std::atomic<int64_t> now_us{0};
  StepGate gate{[&] { return now_us.load(); }};
  testing::FakeOptions options;
  options.layers = 100;
  std::atomic<int> layer{0};
  std::atomic<bool> rival_is_done{false};
  int done_by_layer = 0;
  options.in_layer = [&](const StepPlan&, int at) {
    layer = at;
    now_us += 1000;
    if (at == 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (rival_is_done && done_by_layer == 0) done_by_layer = at;
  };
  const std::unique_ptr<Backend> backend =
      BehindGate(std::make_unique<testing::FakeBackend>(options), gate);
  std::atomic<bool> waits{false};
  std::thread rival([&] {
    while (layer < 10) std::this_thread::yield();
    StepGate::Member member(gate);
    waits = true;
    member.Enter();
    rival_is_done = true;
    member.Leave();
  });
  StepPlan plan;
  plan.copies.clear();
  plan.tokens = {1};
  const std::vector<BlockId> table{static_cast<BlockId>(0)};
  const std::vector<BlockTable> tables{table, table};
  plan.slices = {{.count = 1, .tables = tables, .num_rows = 1}};
  plan.num_rows = 1;
  // The rival waits by layer 20.
  const auto wants_break = [&] {
    while (layer >= 20 && !waits) std::this_thread::yield();
    return false;
  };
  int num_breaks = 0;
  EXPECT_TRUE(RunStep(*backend, plan, wants_break, [&] { ++num_breaks; }).ok());
  rival.join();
  EXPECT_EQ(num_breaks, 0);
  EXPECT_GT(done_by_layer, 10);
  EXPECT_LT(done_by_layer, 99);
}

}  // namespace
}  // namespace hearth
