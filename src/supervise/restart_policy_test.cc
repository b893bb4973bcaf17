// SPDX-License-Identifier: Apache-2.0
#include "supervise/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace hearth {
namespace {

using ::testing::IsEmpty;

constexpr WorkerEnd kCrash{.was_ready = true, .by_signal = true, .number = SIGSEGV, .lived_s = 1};
constexpr WorkerEnd kFailedStart{.was_ready = false, .by_signal = false, .number = 1, .lived_s = 1};

TEST(RestartPolicy, WhatNeverServedEndsTheProgram) {
  EXPECT_EQ(RestartPolicy().OnEnd(kFailedStart), std::nullopt);
  EXPECT_EQ(RestartPolicy().OnEnd({.by_signal = true, .number = SIGKILL}), std::nullopt);
}

TEST(RestartPolicy, ACleanEndIsTheEnd) {
  EXPECT_EQ(RestartPolicy().OnEnd({.was_ready = true, .lived_s = 5}), std::nullopt);
}

TEST(RestartPolicy, TheFirstDeathIsMendedAtOnceAndRepeatedOnesWithinASecond) {
  RestartPolicy policy;
  EXPECT_EQ(policy.OnEnd(kCrash), 0);
  double last = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto wait = policy.OnEnd(kCrash);
    ASSERT_TRUE(wait.has_value());
    EXPECT_GE(*wait, last);
    EXPECT_LE(*wait, 0.5);
    last = *wait;
  }
  EXPECT_EQ(last, 0.5);
}

TEST(RestartPolicy, ALongLifeForgetsTheDeathsBeforeIt) {
  RestartPolicy policy;
  for (int i = 0; i < 5; ++i) policy.OnEnd(kCrash);
  WorkerEnd old = kCrash;
  old.lived_s = 3600;
  EXPECT_EQ(policy.OnEnd(old), 0);
}

TEST(RestartPolicy, StartsThatFailWaitLongerEachTimeAndGiveUpOnPlainErrors) {
  RestartPolicy policy;
  policy.OnEnd(kCrash);
  double last = 0;
  for (int i = 0; i < 9; ++i) {
    const auto wait = policy.OnEnd(kFailedStart);
    ASSERT_TRUE(wait.has_value()) << i;
    EXPECT_GE(*wait, last);
    EXPECT_LE(*wait, 30);
    last = *wait;
  }
  EXPECT_EQ(last, 30);
  EXPECT_EQ(policy.OnEnd(kFailedStart), std::nullopt);
}

TEST(RestartPolicy, StartsThatAreKilledAreTriedForEver) {
  RestartPolicy policy;
  policy.OnEnd(kCrash);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(policy.OnEnd({.by_signal = true, .number = SIGKILL}).has_value());
  }
}

TEST(RestartPolicy, AStartThatWorksForgetsTheFailedOnes) {
  RestartPolicy policy;
  policy.OnEnd(kCrash);
  for (int i = 0; i < 9; ++i) policy.OnEnd(kFailedStart);
  policy.OnEnd(kCrash);
  EXPECT_EQ(policy.OnEnd(kFailedStart), 0.5);
}

TEST(Describe, SaysSignalsAndCodes) {
  EXPECT_EQ(Describe(true, SIGSEGV), "killed by signal 11 (Segmentation fault)");
  EXPECT_EQ(Describe(false, 3), "exit code 3");
  EXPECT_EQ(Describe(false, kExitStalled), "exit code 70 (no progress)");
}

std::vector<RequestDigest> Refused(PoisonList& list, double now_s) {
  std::vector<RequestDigest> out;
  for (const PoisonList::Entry& entry : list.entries(now_s)) {
    if (entry.is_refused) out.push_back(entry.digest);
  }
  return out;
}

const RequestDigest kA{1, 2}, kB{1, 3}, kC{9, 9};

TEST(PoisonList, TwoDeathsOfOneRequestRefuseIt) {
  PoisonList list;
  list.OnDeath(std::vector{kA, kB}, 10);
  EXPECT_THAT(Refused(list, 11), IsEmpty());
  EXPECT_EQ(list.entries(11).size(), 2u);
  list.OnDeath(std::vector{kC, kB}, 20);
  EXPECT_EQ(Refused(list, 21), std::vector{kB});
}

TEST(PoisonList, TheSameRequestTwiceInOneDeathCountsOnce) {
  PoisonList list;
  list.OnDeath(std::vector{kA, kA, kA}, 10);
  EXPECT_THAT(Refused(list, 10), IsEmpty());
}

TEST(PoisonList, OneThatCameToItsEndIsInnocent) {
  PoisonList list;
  list.OnDeath(std::vector{kA, kB}, 10);
  list.OnLanded(std::vector{kA});
  list.OnDeath(std::vector{kA, kB}, 20);
  EXPECT_EQ(Refused(list, 20), std::vector{kB});
}

TEST(PoisonList, IsForgottenAfterAWhile) {
  PoisonList list;
  list.OnDeath(std::vector{kA}, 0);
  list.OnDeath(std::vector{kA}, 1);
  EXPECT_EQ(Refused(list, PoisonList::kForgetAfterS), std::vector{kA});
  EXPECT_THAT(Refused(list, PoisonList::kForgetAfterS + 2), IsEmpty());
  list.OnDeath(std::vector{kA}, PoisonList::kForgetAfterS + 2);  // counted from the beginning
  EXPECT_THAT(Refused(list, PoisonList::kForgetAfterS + 2), IsEmpty());
}

TEST(PoisonList, StaysSmallAndKeepsTheGuilty) {
  PoisonList list;
  list.OnDeath(std::vector{kA}, 0);
  list.OnDeath(std::vector{kA}, 1);
  for (uint64_t i = 0; i < 2 * PoisonList::kMaxEntries; ++i) {
    list.OnDeath(std::vector{RequestDigest{i, 77}}, 2 + static_cast<double>(i) * 0.01);
  }
  EXPECT_EQ(list.entries(8).size(), PoisonList::kMaxEntries);
  EXPECT_EQ(Refused(list, 8), std::vector{kA});
}

}  // namespace
}  // namespace hearth
