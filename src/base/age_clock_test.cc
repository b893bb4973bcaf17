// SPDX-License-Identifier: Apache-2.0
#include "base/age_clock.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth {
namespace {

constexpr int64_t kDay = 24 * 3600, kYear = 365 * kDay, kToday = 1'800'000'000;

// A machine: its two clocks, and what a store on it keeps.
struct Machine {
  ClockReading now{kToday, 1000, "first"};
  AgeRecord kept = AgeRecord::Begin(now);

  void Pass(int64_t seconds) {
    now.wall_s += seconds;
    now.boot_s += seconds;
  }
  void Jump(int64_t seconds) { now.wall_s += seconds; }
  // Off for so long; the clock on the wall goes on by battery.
  void Restart(int64_t off_s) {
    now.wall_s += off_s;
    now.boot_s = 20;
    now.boot += "+";
  }
  int64_t Sync(AgeClock& clock) {
    kept = clock.Sync(now, kept);
    // What is kept is read again, as a store would.
    EXPECT_EQ(AgeRecord::Parse(kept.Write())->Write(), kept.Write());
    return clock.Age(now);
  }
  // As a process that runs for so long.
  int64_t Run(AgeClock& clock, int64_t seconds) {
    for (int64_t i = 0; i < seconds; i += 10) {
      Pass(10);
      Sync(clock);
    }
    return clock.Age(now);
  }
};

TEST(AgeClock, GoesOnAsTimePasses) {
  Machine machine;
  AgeClock clock;
  EXPECT_FALSE(clock.has_begun());
  EXPECT_TRUE(clock.IsDue(machine.now));
  EXPECT_EQ(machine.Sync(clock), kToday);
  machine.Pass(9);
  EXPECT_FALSE(clock.IsDue(machine.now));
  EXPECT_EQ(clock.Age(machine.now), kToday + 9);
  machine.Pass(1);
  EXPECT_TRUE(clock.IsDue(machine.now));
  EXPECT_EQ(machine.Sync(clock), kToday + 10);
}

TEST(AgeClock, NoJumpOfTheWallsClockIsTime) {
  for (const int64_t jump : {3 * kDay, -3 * kDay, 12 * kYear, -12 * kYear, 200 * kYear, -kToday}) {
    Machine machine;
    AgeClock clock;
    machine.Sync(clock);
    int64_t passed = machine.Run(clock, 7200) - kToday;
    for (int round = 0; round < 4; ++round) {
      machine.Jump(round % 2 == 0 ? jump : -jump);
      // For long enough that the new date is believed, and for less.
      passed = machine.Run(clock, round < 2 ? 30 : 3 * 3600) - kToday;
    }
    EXPECT_EQ(passed, 7200 + 2 * 30 + 6 * 3600) << jump;
  }
}

TEST(AgeClock, AProcessThatStartsAgainKnowsWhatPassedWhateverTheDate) {
  for (const int64_t jump : {int64_t{0}, 3 * kDay, -3 * kDay, 12 * kYear, -12 * kYear}) {
    for (const int64_t first : {int64_t{100}, 2 * AgeClock::kSettle_s}) {
      Machine machine;
      AgeClock before;
      machine.Sync(before);
      machine.Run(before, first);
      machine.Jump(jump);
      machine.Pass(5000);  // nobody runs
      AgeClock after;
      EXPECT_EQ(machine.Sync(after), kToday + first + 5000) << jump;
      EXPECT_EQ(machine.Run(after, 3 * 3600), kToday + first + 5000 + 3 * 3600) << jump;
    }
  }
}

TEST(AgeClock, WhatTheMachineWasOffForIsAddedOnceTheDateIsSure) {
  Machine machine;
  AgeClock before;
  machine.Sync(before);
  const int64_t aged = machine.Run(before, 7200);
  machine.Restart(2 * kDay);
  AgeClock after;
  EXPECT_EQ(machine.Sync(after), aged);
  EXPECT_EQ(machine.Run(after, 3600), aged + 3600) << "not yet";
  EXPECT_EQ(machine.Run(after, 3600), aged + 7200 + 2 * kDay);
  // Once.
  EXPECT_EQ(machine.Run(after, 7200), aged + 4 * 3600 + 2 * kDay);
}

TEST(AgeClock, WhatIsStillToBeAddedOutlivesTheProcess) {
  Machine machine;
  AgeClock before;
  machine.Sync(before);
  const int64_t aged = machine.Run(before, 7200);
  machine.Restart(2 * kDay);
  for (int i = 0; i < 3; ++i) {
    AgeClock one;
    machine.Sync(one);
    machine.Run(one, 1000);
    machine.Pass(500);
  }
  AgeClock after;
  machine.Sync(after);
  EXPECT_LT(machine.Run(after, 3600), aged + 2 * kDay);
  EXPECT_EQ(machine.Run(after, 3600), aged + 3 * 1500 + 7200 + 2 * kDay);
}

TEST(AgeClock, AMachineThatStartsWithAWrongDateAddsNothingUntilItIsRight) {
  for (const int64_t wrong : {12 * kYear, 3 * kDay, -kToday + 7, -3 * kDay}) {
    Machine machine;
    AgeClock before;
    machine.Sync(before);
    const int64_t aged = machine.Run(before, 7200);
    machine.Restart(600);
    machine.Jump(wrong);
    AgeClock after;
    machine.Sync(after);
    EXPECT_EQ(machine.Run(after, 3000), aged + 3000) << wrong;
    machine.Jump(-wrong);
    EXPECT_EQ(machine.Run(after, 3600), aged + 6600) << wrong;
    EXPECT_EQ(machine.Run(after, 3600), aged + 10'200 + 600) << wrong;
  }
}

TEST(AgeClock, ADateThatNobodyBelievedIsNoMeasureLater) {
  Machine machine;
  machine.now.wall_s = 7;  // 1970: no battery
  machine.kept = AgeRecord::Begin(machine.now);
  AgeClock before;
  machine.Sync(before);
  EXPECT_EQ(machine.Run(before, 600), 607);
  EXPECT_FALSE(machine.kept.offset_s);
  machine.Restart(0);
  machine.now.wall_s = kToday;
  AgeClock after;
  machine.Sync(after);
  EXPECT_EQ(machine.Run(after, 3 * 3600), 607 + 3 * 3600) << "not 56 years";
  EXPECT_TRUE(machine.kept.offset_s);
}

TEST(AgeClock, ADateThatWasSetForGoodIsTheMeasureFromThenOn) {
  Machine machine;
  AgeClock before;
  machine.Sync(before);
  machine.Run(before, 7200);
  machine.Jump(12 * kYear);
  const int64_t aged = machine.Run(before, 7200);
  machine.Restart(600);
  AgeClock after;
  machine.Sync(after);
  EXPECT_EQ(machine.Run(after, 7200), aged + 7200 + 600);
}

TEST(AgeClock, ThoseWhoShareAStoreAreOneAge) {
  // Two machines whose starts nobody can compare, and the database's clock on the wall.
  AgeRecord kept;
  ClockReading a{kToday, 5'000'000, "a"}, b{kToday, 77, "b"};
  kept = AgeRecord::Begin(a);
  AgeClock clock_a, clock_b;
  const auto pass = [&](int64_t seconds, bool has_b) {
    for (int64_t i = 0; i < seconds; i += 10) {
      for (ClockReading* each : {&a, &b}) {
        each->wall_s += 10;
        each->boot_s += 10;
      }
      kept = clock_a.Sync(a, kept);
      if (has_b) kept = clock_b.Sync(b, kept);
    }
  };
  kept = clock_a.Sync(a, kept);
  pass(7200, false);
  // The date jumps, and a second replica starts right after: neither adds anything.
  a.wall_s += 12 * kYear;
  b.wall_s += 12 * kYear;
  pass(10, true);
  EXPECT_EQ(clock_b.Age(b), clock_a.Age(a));
  pass(3 * 3600, true);
  EXPECT_EQ(clock_a.Age(a), kToday + 7210 + 3 * 3600);
  EXPECT_EQ(clock_b.Age(b), kToday + 7210 + 3 * 3600);
}

TEST(AgeClock, AStoreOfBeforeAgesHadDatesForAges) {
  // All in it is two days old, and the clock is right; or not yet.
  for (const int64_t wrong : {int64_t{0}, 12 * kYear, -12 * kYear}) {
    Machine machine;
    machine.Jump(wrong);
    machine.kept = AgeRecord::Begin(machine.now, kToday - 2 * kDay);
    AgeClock clock;
    EXPECT_LE(machine.Sync(clock), kToday - 2 * kDay);
    machine.Run(clock, 1000);
    machine.Jump(-wrong);
    EXPECT_EQ(machine.Run(clock, 8000), kToday + 9000) << wrong;
  }
}

TEST(AgeRecord, IsTextAndNothingElse) {
  const AgeRecord record{12, 34, "boot", -56};
  EXPECT_EQ(record.Write(), "12 34 boot -56");
  EXPECT_EQ(AgeRecord::Parse("12 34 boot -56\n")->offset_s, -56);
  EXPECT_EQ(AgeRecord::Parse("12 34 - -")->boot, "");
  EXPECT_FALSE(AgeRecord::Parse("12 34 - -")->offset_s);
  for (const char* text :
       {"", " ", "12", "12 34", "12 34 boot", "12 34 boot ", "x 34 boot 1", "12 34 boot 1x",
        "12 34  1", "9999999999999999999 3 b -", "2000000000000000000 3 b -", "1 2 b 3 4"}) {
    EXPECT_FALSE(AgeRecord::Parse(text)) << text;
  }
}

TEST(AgeRecord, IsWrittenWhenItSaysMoreThanTheOneBefore) {
  const AgeRecord kept{100, 50, "a", 7};
  EXPECT_FALSE((AgeRecord{159, 109, "a", 7}.IsNews(kept)));
  EXPECT_TRUE((AgeRecord{160, 110, "a", 7}.IsNews(kept)));
  EXPECT_TRUE((AgeRecord{100, 50, "b", 7}.IsNews(kept)));
  EXPECT_TRUE((AgeRecord{100, 50, "a", 8}.IsNews(kept)));
}

TEST(Clocks, TheOneThatNobodySetsGoesForward) {
  const ClockReading first = ReadClocks();
  EXPECT_GT(first.wall_s, 1'700'000'000);
  EXPECT_FALSE(first.boot.empty());
  const ClockReading second = ReadClocks();
  EXPECT_GE(second.boot_s, first.boot_s);
  EXPECT_EQ(second.boot, first.boot);
}

}  // namespace
}  // namespace hearth
