// SPDX-License-Identifier: Apache-2.0
#include "supervise/progress_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

namespace hearth {
namespace {

using Verdict = StallJudge::Verdict;

bool Eventually(const std::function<bool()>& is) {
  for (int i = 0; i < 5000 && !is(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return is();
}

TEST(StallJudge, TellsOnceAndEndsLater) {
  StallJudge judge(2, 4);
  EXPECT_EQ(judge.OnLook(true), Verdict::kWait);
  EXPECT_FALSE(judge.is_wedged());
  EXPECT_EQ(judge.OnLook(true), Verdict::kTell);
  EXPECT_TRUE(judge.is_wedged());
  EXPECT_EQ(judge.OnLook(true), Verdict::kWait);
  EXPECT_EQ(judge.OnLook(true), Verdict::kEnd);
}

TEST(StallJudge, ProgressForgivesEverything) {
  StallJudge judge(2, 3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(judge.OnLook(true), Verdict::kWait);
    EXPECT_EQ(judge.OnLook(false), Verdict::kFine);
  }
  judge.OnLook(true);
  judge.OnLook(true);
  judge.OnLook(false);
  EXPECT_FALSE(judge.is_wedged());
}

struct Seen {
  std::atomic<int> beats{0}, told{0}, ended{0};
  ProgressOptions Options(double limit_s) {
    return {.limit_s = limit_s,
            .look_every_s = 0.001,
            .beat = [this] { ++beats; },
            .tell = [this](const std::string&) { ++told; },
            .end = [this] { ++ended; }};
  }
};

TEST(ProgressWatch, BeatsAndLeavesAWorkingProcessAlone) {
  Seen seen;
  ProgressWatch watch(seen.Options(0.01));
  watch.Watch([] { return false; });
  EXPECT_TRUE(Eventually([&] { return seen.beats > 50; }));
  EXPECT_EQ(seen.told, 0);
  EXPECT_EQ(seen.ended, 0);
  EXPECT_FALSE(watch.is_wedged());
}

TEST(ProgressWatch, AStallIsToldAndThenTheEnd) {
  Seen seen;
  std::atomic<bool> is_stalled{true};
  ProgressWatch watch(seen.Options(0.02));
  watch.Watch([&] { return is_stalled.load(); });
  EXPECT_TRUE(Eventually([&] { return seen.ended > 0; }));
  EXPECT_EQ(seen.told, 1);
  EXPECT_TRUE(watch.is_wedged());
  is_stalled = false;
  EXPECT_TRUE(Eventually([&] { return !watch.is_wedged(); }));
  watch.Forget();
}

TEST(ProgressWatch, NobodyIsAskedAfterForget) {
  Seen seen;
  ProgressWatch watch(seen.Options(10));
  std::atomic<int> asked{0};
  watch.Watch([&] { return ++asked < 0; });
  EXPECT_TRUE(Eventually([&] { return asked > 3; }));
  watch.Forget();
  const int before = asked;
  const int beats = seen.beats;
  EXPECT_TRUE(Eventually([&] { return seen.beats > beats + 10; }));
  EXPECT_EQ(asked, before);
}

TEST(ProgressWatch, AnEndThatDoesNotComeIsMade) {
  Seen seen;
  ProgressWatch watch(seen.Options(1000));
  EXPECT_TRUE(Eventually([&] { return seen.beats > 20; }));
  EXPECT_EQ(seen.ended, 0);
  watch.EndWithin(0.01);
  EXPECT_TRUE(Eventually([&] { return seen.ended == 1; }));
  EXPECT_EQ(seen.told, 1);
}

}  // namespace
}  // namespace hearth
